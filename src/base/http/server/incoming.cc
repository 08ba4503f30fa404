#include "base/http/server/incoming.h"

#include <strings.h>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <limits>
#include <utility>

namespace parallelrun {
namespace {

namespace http = boost::beast::http;
using ErrorCode = boost::system::error_code;

// A chunk header or the trailers of a chunked body.
constexpr size_t kMaxChunkHeader = 4 * 1024;

HttpResponse ParseRefusal(ErrorCode ec) {
  if (ec == http::error::header_limit)
    return TextResponse(431, "the request's head is too large\n");
  if (ec == http::error::body_limit) return TextResponse(413, "the body is too large\n");
  if (ec == http::error::bad_version) return TextResponse(505, "HTTP/1.1 is spoken here\n");
  return TextResponse(400, "malformed request: " + ec.message() + "\n");
}

}  // namespace

// Parses straight into an HttpRequest.
class Incoming::Parser final : public http::basic_parser<true> {
 public:
  Parser(HttpRequest& request, size_t max_header_bytes) : request_(request) {
    header_limit(static_cast<uint32_t>(max_header_bytes));
    // The gate decides, once the head is known. Not "none": Beast 1.74 compares lengths with it.
    body_limit(std::numeric_limits<uint64_t>::max());
    eager(false);
  }

  bool is_http_1_1() const { return version_ == 11; }

 private:
  using View = boost::beast::string_view;

  void on_request_impl(http::verb, View method, View target, int version, ErrorCode& ec) override {
    version_ = version;
    request_.method = std::string(method);
    const size_t query = target.find('?');
    request_.path = std::string(target.substr(0, query));
    if (query != View::npos) request_.query = std::string(target.substr(query + 1));
    // Only origin-form: this is no proxy.
    if (target.empty() || target[0] != '/') ec = http::error::bad_target;
  }
  void on_response_impl(int, View, int, ErrorCode&) override {}
  void on_field_impl(http::field, View name, View value, ErrorCode&) override {
    if (is_header_done()) return;  // trailers come after the gate: ignored
    request_.headers.push_back({std::string(name), std::string(value)});
  }
  void on_header_impl(ErrorCode&) override {}
  void on_body_init_impl(const boost::optional<uint64_t>& length, ErrorCode&) override {
    if (length) request_.body.reserve(*length);
  }
  size_t on_body_impl(View bytes, ErrorCode&) override {
    request_.body.append(bytes.data(), bytes.size());
    return bytes.size();
  }
  void on_chunk_header_impl(uint64_t, View, ErrorCode&) override {}
  size_t on_chunk_body_impl(uint64_t, View bytes, ErrorCode&) override {
    request_.body.append(bytes.data(), bytes.size());
    return bytes.size();
  }
  void on_finish_impl(ErrorCode&) override {}

  HttpRequest& request_;
  int version_ = 11;
};

Incoming::Incoming(std::string peer, size_t max_header_bytes)
    : max_header_bytes_(max_header_bytes),
      parser_(std::make_unique<Parser>(request_, max_header_bytes)) {
  request_.peer = std::move(peer);
}

Incoming::~Incoming() = default;

bool Incoming::head_done() const { return parser_->is_header_done(); }
bool Incoming::done() const { return parser_->is_done(); }
bool Incoming::keep_alive() const { return parser_->keep_alive(); }

Incoming::Took Incoming::Take(std::string_view& bytes) {
  const bool in_head = !head_done();
  ErrorCode ec;
  const size_t used = parser_->put(boost::asio::buffer(bytes.data(), bytes.size()), ec);
  bytes.remove_prefix(used);
  const bool more = ec == http::error::need_more;
  if (in_head) {
    // Beast's own limit starts anew when it has used up a part.
    head_bytes_ += used;
    if (head_bytes_ + (more ? bytes.size() : 0) > max_header_bytes_) ec = http::error::header_limit;
  } else if (more && bytes.size() > kMaxChunkHeader) {
    ec = http::error::bad_chunk;
  }
  if (ec == http::error::need_more) return Took::kMore;
  if (!ec) return Took::kOn;
  refusal_ = ParseRefusal(ec);
  return Took::kRefused;
}

const char* Incoming::Ambiguous() const {
  const bool http_1_1 = parser_->is_http_1_1();
  int hosts = 0;
  int encodings = 0;
  for (const HttpHeader& header : request_.headers) {
    if (strcasecmp(header.name.c_str(), "host") == 0) ++hosts;
    if (strcasecmp(header.name.c_str(), "transfer-encoding") == 0) {
      ++encodings;
      if (!http_1_1 || strcasecmp(header.value.c_str(), "chunked") != 0) {
        return "only Transfer-Encoding: chunked is understood\n";
      }
    }
  }
  if (hosts > 1 || (http_1_1 && hosts == 0)) return "exactly one Host header is needed\n";
  if (encodings > 1) return "more than one Transfer-Encoding\n";
  return "";
}

bool Incoming::BoundBody(size_t most) {
  if (parser_->content_length().value_or(0) > most) return false;
  parser_->body_limit(most);
  return true;
}

bool Incoming::awaits_continue() const {
  const std::string* expect = FindHeader(request_.headers, "Expect");
  return expect != nullptr && strcasecmp(expect->c_str(), "100-continue") == 0 &&
         !parser_->is_done() && parser_->is_http_1_1();
}

}  // namespace parallelrun
