// An HTTP/1.1 server on an EventLoop, plain or TLS, for requests from strangers: whoever connects
// meets the gate and the limits before a byte of a body is kept.
//
// Thread-safety: none; made, used and destroyed on the loop's thread (or while it does not run).
// Gate, handler and all callbacks run there too, and must not block or throw.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/error.h"
#include "base/event_loop.h"
#include "base/http/message.h"
#include "base/time.h"

namespace parallelrun {

class HttpConnection;
struct HttpServerState;

// One request and the duty to answer it, now or at any later time, once. Let go without an
// answer, it answers 500.
class HttpExchange {
 public:
  HttpExchange(HttpRequest request, std::weak_ptr<HttpConnection> connection);
  ~HttpExchange();
  HttpExchange(const HttpExchange&) = delete;
  HttpExchange& operator=(const HttpExchange&) = delete;

  // Not const, so that the handler may move the body out.
  HttpRequest& request() { return request_; }

  // Dropped silently when the client has gone. Only the first call counts.
  void Respond(HttpResponse response);
  // In place of Respond: an answer whose body comes in parts, from `head`'s on, until End, or until
  // the exchange is let go. The connection is closed after it. A client that takes nothing of a
  // part for the write limit is gone.
  void Begin(HttpResponse head);
  void Send(std::string part);
  void End();
  // Bytes of it that the client has not taken yet; they are in memory.
  size_t waiting() const;
  // Runs `callback` when the connection closes before Respond or End: at once when the client's end
  // of file or reset arrives (a client that shuts down only its sending side counts as gone too).
  // Not called when the server itself is destroyed.
  void OnGone(std::function<void()> callback) { on_gone_ = std::move(callback); }
  bool gone() const { return gone_; }

  // For the connection.
  void MarkGone();

 private:
  HttpRequest request_;
  std::weak_ptr<HttpConnection> connection_;
  std::function<void()> on_gone_;
  bool responded_ = false;
  bool begun_ = false;
  bool gone_ = false;
};

struct HttpServerOptions {
  std::string host = "127.0.0.1";  // address or name; empty: every address, IPv6 and IPv4
  uint16_t port = 0;               // 0: the system chooses
  int listen_fd = -1;              // an inherited listening socket instead; becomes the server's

  // PEM files; TLS when set. Read again when they change (looked at every 10 s at most).
  std::string tls_chain_file;
  std::string tls_key_file;

  size_t max_connections = 4096;  // one more gets 503 and is closed
  // Paths that get their answer beyond max_connections too, if the request has no body.
  std::vector<std::string> always_answered;
  size_t max_header_bytes = 16 * 1024;
  Duration header_timeout = seconds(10);  // TLS handshake; first to last byte of a head
  Duration body_idle_timeout = seconds(30);
  Duration keep_alive_timeout = seconds(75);  // between requests; zero: one request a connection
  Duration write_idle_timeout = seconds(30);
};

// Limits of a port to which anybody may connect: whoever is silent for a second has to go, and
// however many connect, the probes /healthz and /readyz are answered.
void LimitPublicPort(HttpServerOptions& options);

class HttpServer {
 public:
  // Sees a request without its body (method, path, query, headers, peer) before any of the body
  // is read. Answers how many bytes of body are let in, or the refusal.
  using Gate = std::function<std::variant<size_t, HttpResponse>(const HttpRequest&)>;
  using Handler = std::function<void(std::shared_ptr<HttpExchange>)>;

  // Binds and listens; requests come once the loop runs.
  static Result<std::unique_ptr<HttpServer>> Start(EventLoop& loop, HttpServerOptions options,
                                                   Gate gate, Handler handler);
  // Closes everything at once.
  ~HttpServer();

  uint16_t port() const;
  size_t connections() const;

  // Stops accepting, closes idle connections, lets requests in flight finish (their connections
  // close after the answer), closes the rest after `grace`; then runs `done`, never inside this.
  void Drain(Duration grace, std::function<void()> done);

 private:
  explicit HttpServer(std::shared_ptr<HttpServerState> state);
  std::shared_ptr<HttpServerState> state_;
};

}  // namespace parallelrun
