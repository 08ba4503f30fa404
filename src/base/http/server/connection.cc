#include "base/http/server/connection.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>
#include <strings.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <optional>
#include <utility>

#include "base/http/server/incoming.h"

namespace parallelrun {
namespace {

namespace asio = boost::asio;
using ErrorCode = boost::system::error_code;

constexpr size_t kReadBytes = 16 * 1024;
// How much of later requests is kept while one is being answered.
constexpr size_t kMaxPipelined = 16 * 1024;
// A response this small travels in one piece with its head.
constexpr size_t kJoinBytes = 16 * 1024;
// After an answer that closes: how long, and how much, the client may go on sending. Closing with
// unread bytes would reset the connection and could destroy the answer on its way.
constexpr auto kLingerTime = seconds(2);
constexpr size_t kLingerBytes = 1024 * 1024;
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

enum class Length { kSaid, kUntilClosed };

std::string ResponseHead(const HttpResponse& response, bool keep_alive,
                         Length length = Length::kSaid) {
  std::string head;
  head.reserve(256);
  auto out = std::back_inserter(head);
  fmt::format_to(out, "HTTP/1.1 {} {}\r\n", response.status, StatusText(response.status));
  if (!response.content_type.empty()) {
    fmt::format_to(out, "Content-Type: {}\r\n", response.content_type);
  }
  for (const HttpHeader& header : response.headers) {
    fmt::format_to(out, "{}: {}\r\n", header.name, header.value);
  }
  if (response.status != 204 && response.status != 304 && length == Length::kSaid) {
    fmt::format_to(out, "Content-Length: {}\r\n", response.body.size());
  }
  head += keep_alive ? "\r\n" : "Connection: close\r\n\r\n";
  return head;
}

bool IsSendable(const HttpResponse& response) {
  return response.status >= 200 && response.status <= 599 &&
         IsSafeHeader({"Content-Type", response.content_type}) &&
         std::all_of(response.headers.begin(), response.headers.end(), IsSafeHeader);
}

HttpSocket& SocketOf(HttpSocket& stream) { return stream; }
HttpSocket& SocketOf(asio::ssl::stream<HttpSocket>& stream) { return stream.next_layer(); }

// One read is pending nearly always, also while a handler thinks: this is how a client that has
// gone is noticed at once. At most one write is pending.
template <class Stream>
class StreamConnection final : public HttpConnection {
 public:
  template <class... Args>
  StreamConnection(std::shared_ptr<HttpConnectionHost> host, std::string peer, bool refuse,
                   Args&&... args)
      : host_(std::move(host)),
        peer_(std::move(peer)),
        refuse_(refuse),
        stream_(std::forward<Args>(args)...) {}

  void Start() override {
    SetDeadline(host_->options.header_timeout);
    if constexpr (std::is_same_v<Stream, HttpSocket>) {
      BeginRequest(host_->options.header_timeout);
    } else {
      stream_.async_handshake(asio::ssl::stream_base::server, [self = Self()](ErrorCode ec) {
        if (self->phase_ == Phase::kClosed) return;
        if (ec) return self->Close(true);
        self->BeginRequest(self->host_->options.header_timeout);
      });
    }
  }

  void Respond(HttpResponse response) override {
    if (phase_ != Phase::kHandling) return;
    exchange_.reset();
    Send(std::move(response));
  }

  void Begin(HttpResponse head) override {
    if (phase_ != Phase::kHandling) return;
    if (!IsSendable(head) || is_head_) return Respond(std::move(head));
    phase_ = Phase::kParts;
    keep_alive_ = false;
    written_ = 0;
    out_ = ResponseHead(head, false, Length::kUntilClosed) + head.body;
    if (!writing_) WriteMore();
  }

  void Add(std::string part) override {
    if (phase_ != Phase::kParts || part.empty()) return;
    parts_ += part;
    if (!writing_) OnWritten({}, 0);
  }

  // What waits is sent, as the rest of an answer.
  void End() override {
    if (phase_ != Phase::kParts) return;
    exchange_.reset();
    phase_ = Phase::kWriting;
    if (!writing_) OnWritten({}, 0);
  }

  size_t waiting() const override {
    return phase_ == Phase::kParts ? out_.size() - written_ + parts_.size() : 0;
  }

  void CheckDeadline(SteadyTime now) override {
    if (now >= deadline_) Close(true);
  }

  std::optional<SteadyTime> WaitsSince() const override {
    const bool newcomer = phase_ == Phase::kHandshake || (phase_ == Phase::kHead && !served_);
    if (newcomer || phase_ == Phase::kLinger) return since_;
    return std::nullopt;
  }

  void CloseIfIdle() override {
    const bool idle = phase_ == Phase::kHandshake || (phase_ == Phase::kHead && !head_begun_);
    if (idle) Close(false);
  }

  void Close(bool tell) override {
    if (phase_ == Phase::kClosed) return;
    phase_ = Phase::kClosed;
    ErrorCode ignored;
    SocketOf(stream_).close(ignored);
    const auto self = shared_from_this();  // Forget lets go of us
    if (const auto exchange = std::exchange(exchange_, {}).lock(); exchange && tell) {
      exchange->MarkGone();
    }
    host_->Forget(self);
  }

 private:
  enum class Phase { kHandshake, kHead, kBody, kHandling, kParts, kWriting, kLinger, kClosed };

  std::shared_ptr<StreamConnection> Self() {
    return std::static_pointer_cast<StreamConnection>(shared_from_this());
  }

  void SetDeadline(Duration from_now) { deadline_ = std::chrono::steady_clock::now() + from_now; }

  void BeginRequest(Duration wait) {
    phase_ = Phase::kHead;
    head_begun_ = false;
    incoming_.emplace(peer_, host_->options.max_header_bytes);
    SetDeadline(wait);
    if (!pending_.empty()) Take({});
    ReadMore();
  }

  void ReadMore() {
    if (reading_ || phase_ == Phase::kClosed) return;
    const bool busy =
        phase_ == Phase::kHandling || phase_ == Phase::kParts || phase_ == Phase::kWriting;
    if (busy && pending_.size() >= kMaxPipelined) return;  // BeginRequest reads on
    reading_ = true;
    stream_.async_read_some(asio::buffer(chunk_),
                            [self = Self()](ErrorCode ec, size_t n) { self->OnRead(ec, n); });
  }

  void OnRead(ErrorCode ec, size_t n) {
    reading_ = false;
    if (phase_ == Phase::kClosed) return;
    if (ec) return Close(true);
    if (phase_ == Phase::kLinger) {
      lingered_ += n;
      if (lingered_ > kLingerBytes) return Close(false);
    } else {
      Take({chunk_.data(), n});
    }
    ReadMore();
  }

  // Parses what is pending and `bytes`; keeps the part that is not used up.
  void Take(std::string_view bytes) {
    if (pending_.empty()) {
      Parse(bytes);
      pending_.assign(bytes);
      return;
    }
    pending_.append(bytes);
    std::string_view all = pending_;
    Parse(all);
    pending_.erase(0, pending_.size() - all.size());
  }

  void Parse(std::string_view& bytes) {
    while (!bytes.empty() && (phase_ == Phase::kHead || phase_ == Phase::kBody)) {
      if (phase_ == Phase::kHead && !head_begun_) {
        head_begun_ = true;
        SetDeadline(host_->options.header_timeout);
      }
      const Incoming::Took took = incoming_->Take(bytes);
      if (took == Incoming::Took::kMore) return;
      if (took == Incoming::Took::kRefused) return Refuse(std::move(incoming_->refusal()));
      if (phase_ == Phase::kHead && incoming_->head_done()) {
        if (!Admit()) return;
        phase_ = Phase::kBody;
      }
      if (phase_ != Phase::kBody) continue;
      SetDeadline(host_->options.body_idle_timeout);
      if (incoming_->done()) Dispatch();
    }
  }

  // The head is there: limits and gate. False if the request was refused.
  bool Admit() {
    if (refuse_ && !IsAlwaysAnswered()) {
      return Refuse(TextResponse(503, "too many connections; try again later\n")), false;
    }
    const char* ambiguous = incoming_->Ambiguous();
    if (*ambiguous) return Refuse(TextResponse(400, ambiguous)), false;
    auto verdict = host_->gate(incoming_->request());
    if (phase_ == Phase::kClosed) return false;  // the gate destroyed the server
    if (auto* refusal = std::get_if<HttpResponse>(&verdict)) {
      return Reject(std::move(*refusal), incoming_->done() && incoming_->keep_alive()), false;
    }
    const size_t limit = std::get<size_t>(verdict);
    if (!incoming_->BoundBody(limit)) {
      return Refuse(TextResponse(413, fmt::format("the body may have {} bytes\n", limit))), false;
    }
    if (incoming_->awaits_continue()) WriteContinue(kContinue);
    return true;
  }

  // One with a body could keep its place for as long as it sends a byte now and then.
  bool IsAlwaysAnswered() const {
    const std::vector<std::string>& paths = host_->options.always_answered;
    return incoming_->done() &&
           std::find(paths.begin(), paths.end(), incoming_->request().path) != paths.end();
  }

  void Dispatch() {
    served_ = true;
    keep_alive_ = incoming_->keep_alive() && KeepsAlive();
    HttpRequest request = std::move(incoming_->request());
    incoming_.reset();
    is_head_ = request.method == "HEAD";
    phase_ = Phase::kHandling;
    deadline_ = SteadyTime::max();  // the handler takes its time
    const auto exchange = std::make_shared<HttpExchange>(std::move(request), weak_from_this());
    exchange_ = exchange;
    host_->handler(exchange);
  }

  // Answers a request that is malformed or of which not everything was read, and closes: what
  // follows it cannot be told apart from its body.
  void Refuse(HttpResponse response) { Reject(std::move(response), false); }

  void Reject(HttpResponse response, bool keep_alive) {
    served_ = true;
    keep_alive_ = keep_alive && KeepsAlive();
    is_head_ = incoming_->request().method == "HEAD";
    incoming_.reset();
    Send(std::move(response));
  }

  bool KeepsAlive() const {
    return !refuse_ && host_->options.keep_alive_timeout > Duration::zero();
  }

  void Send(HttpResponse response) {
    if (!IsSendable(response)) {
      spdlog::error("HTTP: an answer to {} has a bad status or header (500 was sent instead)",
                    peer_);
      response = TextResponse(500, "the answer could not be sent\n");
    }
    if (host_->draining) keep_alive_ = false;
    phase_ = Phase::kWriting;
    written_ = 0;
    out_ = ResponseHead(response, keep_alive_);
    const bool has_body = !is_head_ && response.status != 204 && response.status != 304;
    body_out_ = has_body ? std::move(response.body) : std::string();
    if (body_out_.size() <= kJoinBytes) out_ += std::exchange(body_out_, {});
    if (!writing_) WriteMore();  // else WriteContinue goes on
  }

  void WriteContinue(std::string_view rest) {
    writing_ = true;
    stream_.async_write_some(
        asio::buffer(rest.data(), rest.size()), [self = Self(), rest](ErrorCode ec, size_t n) {
          self->writing_ = false;
          if (self->phase_ == Phase::kClosed) return;
          if (ec) return self->Close(true);
          if (n < rest.size()) return self->WriteContinue(rest.substr(n));
          if (self->phase_ == Phase::kWriting || self->phase_ == Phase::kParts) {
            self->WriteMore();
          }
        });
  }

  void WriteMore() {
    writing_ = true;
    SetDeadline(host_->options.write_idle_timeout);
    const size_t of_head = std::min(written_, out_.size());
    const std::array<asio::const_buffer, 2> parts = {
        asio::buffer(out_) + of_head, asio::buffer(body_out_) + (written_ - of_head)};
    stream_.async_write_some(parts,
                             [self = Self()](ErrorCode ec, size_t n) { self->OnWritten(ec, n); });
  }

  void OnWritten(ErrorCode ec, size_t n) {
    writing_ = false;
    if (phase_ == Phase::kClosed) return;
    if (ec) return Close(true);
    written_ += n;
    if (written_ < out_.size() + body_out_.size()) return WriteMore();
    out_ = {};
    body_out_ = {};
    written_ = 0;
    if (!parts_.empty()) {
      out_ = std::exchange(parts_, {});
      return WriteMore();
    }
    if (phase_ == Phase::kParts) {
      deadline_ = SteadyTime::max();  // the next part takes its time
      return;
    }
    if (keep_alive_ && !host_->draining) return BeginRequest(host_->options.keep_alive_timeout);
    phase_ = Phase::kLinger;
    since_ = std::chrono::steady_clock::now();
    SetDeadline(kLingerTime);
    ErrorCode ignored;
    SocketOf(stream_).shutdown(HttpSocket::shutdown_send, ignored);
    ReadMore();
  }

  const std::shared_ptr<HttpConnectionHost> host_;
  const std::string peer_;
  const bool refuse_;
  Stream stream_;
  Phase phase_ = Phase::kHandshake;
  SteadyTime deadline_ = SteadyTime::max();
  SteadyTime since_ = std::chrono::steady_clock::now();  // of WaitsSince
  std::optional<Incoming> incoming_;                     // while it comes
  std::weak_ptr<HttpExchange> exchange_;
  bool head_begun_ = false;
  bool served_ = false;  // its first request was there as a whole
  bool keep_alive_ = false;
  bool is_head_ = false;
  bool reading_ = false;
  bool writing_ = false;
  size_t lingered_ = 0;
  size_t written_ = 0;
  std::string pending_;  // received, not parsed yet
  std::string out_;
  std::string body_out_;
  std::string parts_;  // behind what is being written
  std::array<char, kReadBytes> chunk_;
};

}  // namespace

std::shared_ptr<HttpConnection> MakeHttpConnection(std::shared_ptr<HttpConnectionHost> host,
                                                   HttpSocket socket, std::string peer, bool refuse,
                                                   asio::ssl::context* tls) {
  if (tls == nullptr) {
    return std::make_shared<StreamConnection<HttpSocket>>(std::move(host), std::move(peer), refuse,
                                                          std::move(socket));
  }
  return std::make_shared<StreamConnection<asio::ssl::stream<HttpSocket>>>(
      std::move(host), std::move(peer), refuse, std::move(socket), *tls);
}

}  // namespace parallelrun
