#include "base/http/client/answer.h"

#include <spdlog/fmt/fmt.h>
#include <strings.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <limits>
#include <utility>

namespace parallelrun {
namespace {

namespace http = boost::beast::http;
using ErrorCode = boost::system::error_code;

constexpr size_t kMaxHead = 32 * 1024;
// A chunk header or the trailers of a chunked body.
constexpr size_t kMaxChunkHeader = 4 * 1024;
// Reserved for a body whose length is known; a longer one is believed as it comes.
constexpr uint64_t kMaxReserved = 1024 * 1024;
// "0", and two ends of a line: no chunked body ends in less, and Beast asserts that they are there
// when it looks at the last chunk for the second time.
constexpr size_t kShortestEnd = 5;
constexpr int kSwitchingProtocols = 101;

}  // namespace

// Parses straight into an HttpResponse.
class Answer::Parser final : public http::basic_parser<false> {
 public:
  explicit Parser(const AnswerTo& to) : to_(to) {
    header_limit(kMaxHead);
    // BoundBody decides, once the head is known. Not "none": Beast 1.74 compares lengths with it.
    body_limit(std::numeric_limits<uint64_t>::max());
    eager(false);
    skip(to.head);
  }

  bool sinks() const { return to_.sink && response.status / 100 == 2; }

  HttpResponse response;
  Status sink_status;

 private:
  using View = boost::beast::string_view;

  void on_request_impl(http::verb, View, View, int, ErrorCode&) override {}
  void on_response_impl(int code, View, int, ErrorCode&) override { response.status = code; }
  void on_field_impl(http::field, View name, View value, ErrorCode&) override {
    if (is_header_done()) return;  // trailers: nobody asks for them
    HttpHeader header{std::string(name), std::string(value)};
    if (strcasecmp(header.name.c_str(), "content-type") == 0) {
      response.content_type = std::move(header.value);
    } else {
      response.headers.push_back(std::move(header));
    }
  }
  void on_header_impl(ErrorCode&) override {}
  void on_body_init_impl(const boost::optional<uint64_t>& length, ErrorCode&) override {
    if (length && !sinks()) response.body.reserve(std::min(*length, kMaxReserved));
  }
  size_t on_body_impl(View bytes, ErrorCode& ec) override { return Take(bytes, ec); }
  void on_chunk_header_impl(uint64_t, View, ErrorCode&) override {}
  size_t on_chunk_body_impl(uint64_t, View bytes, ErrorCode& ec) override {
    return Take(bytes, ec);
  }
  void on_finish_impl(ErrorCode&) override {}

  size_t Take(View bytes, ErrorCode& ec) {
    if (!sinks()) {
      response.body.append(bytes.data(), bytes.size());
      return bytes.size();
    }
    sink_status = to_.sink({bytes.data(), bytes.size()});
    if (!sink_status.ok()) ec = make_error_code(boost::system::errc::operation_canceled);
    return bytes.size();
  }

  const AnswerTo& to_;
};

namespace {

// What the parser lets through but two readers could understand differently: where such an answer
// ends is a matter of opinion, and what follows it would be taken for the answer to another
// request.
bool IsAmbiguous(const HttpResponse& response) {
  int encodings = 0;
  int lengths = 0;
  for (const HttpHeader& header : response.headers) {
    if (strcasecmp(header.name.c_str(), "content-length") == 0) ++lengths;
    if (strcasecmp(header.name.c_str(), "transfer-encoding") != 0) continue;
    ++encodings;
    if (strcasecmp(header.value.c_str(), "chunked") != 0) return true;
  }
  return encodings > 1 || lengths > 1 || (encodings > 0 && lengths > 0);
}

Error Malformed(const std::string& why) {
  return {Code::kUnavailable, "the answer is not HTTP as it should be: " + why};
}

}  // namespace

Answer::Answer(AnswerTo to) : to_(std::move(to)), parser_(std::make_unique<Parser>(to_)) {}
Answer::~Answer() = default;

bool Answer::head_done() const { return in_body_; }
bool Answer::done() const { return in_body_ && parser_->is_done(); }
bool Answer::keeps_alive() const { return done() && !followed_ && parser_->keep_alive(); }
HttpResponse& Answer::response() { return parser_->response; }

Status Answer::Put(std::string_view bytes) {
  if (bytes.empty()) return {};
  heard_ = true;
  if (pending_.empty()) {
    if (Status s = Parse(bytes); !s.ok()) return s;
    pending_ = bytes;
  } else {
    pending_ += bytes;
    std::string_view all = pending_;
    if (Status s = Parse(all); !s.ok()) return s;
    pending_.erase(0, pending_.size() - all.size());
  }
  if (done() && !pending_.empty()) followed_ = true;
  return {};
}

// Takes from the front of `bytes` what is used up.
Status Answer::Parse(std::string_view& bytes) {
  while (!bytes.empty() && !done()) {
    if (in_body_ && parser_->chunked() && bytes.size() < kShortestEnd) return {};
    ErrorCode ec;
    const size_t used = parser_->put(boost::asio::buffer(bytes.data(), bytes.size()), ec);
    bytes.remove_prefix(used);
    const bool more = ec == http::error::need_more;
    if (!in_body_) {
      // Beast's own limit starts anew when it has used up a part.
      head_bytes_ += used;
      if (head_bytes_ + (more ? bytes.size() : 0) > kMaxHead) ec = http::error::header_limit;
    } else if (more && bytes.size() > kMaxChunkHeader) {
      ec = http::error::bad_chunk;
    }
    if (ec == http::error::need_more) return {};
    if (!parser_->sink_status.ok()) return parser_->sink_status;
    if (ec == http::error::header_limit) {
      return Error{Code::kInternal,
                   fmt::format("the answer's head is larger than {} bytes", kMaxHead)};
    }
    if (ec == http::error::body_limit) {
      return Error{Code::kInternal,
                   fmt::format("the answer is larger than {} bytes",
                               parser_->sinks() ? to_.max_sink_bytes : to_.max_body_bytes)};
    }
    if (ec) return Malformed(ec.message());
    if (in_body_ || !parser_->is_header_done()) continue;
    if (parser_->response.status / 100 == 1) {
      if (parser_->response.status == kSwitchingProtocols) return Malformed("101, unasked");
      // "100 Continue" and the like: the answer is still to come.
      parser_ = std::make_unique<Parser>(to_);
      continue;
    }
    in_body_ = true;
    if (Status s = BoundBody(); !s.ok()) return s;
  }
  return {};
}

// The head is there.
Status Answer::BoundBody() {
  if (IsAmbiguous(parser_->response)) return Malformed("its length is told in two ways");
  const uint64_t most = parser_->sinks() ? to_.max_sink_bytes : to_.max_body_bytes;
  if (!to_.head && parser_->content_length().value_or(0) > most) {
    return Error{Code::kInternal, fmt::format("the answer is larger than {} bytes", most)};
  }
  parser_->body_limit(most);
  return {};
}

Status Answer::End() {
  ErrorCode ec;
  if (in_body_ && !done()) parser_->put_eof(ec);
  if (done() && !ec) return {};
  return Error{Code::kUnavailable, heard_ ? "the server closed the connection within its answer"
                                          : "the server closed the connection"};
}

}  // namespace parallelrun
