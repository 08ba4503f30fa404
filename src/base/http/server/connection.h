// Internal to http/server: one accepted connection of an HttpServer. Loop thread only.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <memory>
#include <optional>
#include <string>

#include "base/http/server.h"

namespace parallelrun {

// Type erasure of executors costs time and code; there is only one kind here.
using HttpSocket =
    boost::asio::basic_stream_socket<boost::asio::ip::tcp, boost::asio::io_context::executor_type>;
using SteadyTime = std::chrono::steady_clock::time_point;

// What the server gives its connections.
struct HttpConnectionHost {
  virtual ~HttpConnectionHost() = default;
  HttpServerOptions options;
  HttpServer::Gate gate;
  HttpServer::Handler handler;
  bool draining = false;
  // Called once by each connection that closes by itself.
  virtual void Forget(const std::shared_ptr<HttpConnection>& connection) = 0;
};

class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
 public:
  virtual ~HttpConnection() = default;
  virtual void Start() = 0;
  // Takes the answer of the exchange in flight.
  virtual void Respond(HttpResponse response) = 0;
  // Takes it in parts; what is added after the connection has closed is dropped.
  virtual void Begin(HttpResponse head) = 0;
  virtual void Add(std::string part) = 0;
  virtual void End() = 0;
  virtual size_t waiting() const = 0;  // bytes of the parts
  // Closes at once if the wait in progress is over its limit.
  virtual void CheckDeadline(SteadyTime now) = 0;
  // Since when it waits for its first request, or for the client to go after the last answer: what
  // may make room for another connection. Nothing while a request is in work.
  virtual std::optional<SteadyTime> WaitsSince() const = 0;
  // The server drains: closes if no request is in flight.
  virtual void CloseIfIdle() = 0;
  // Closes at once; `tell` runs OnGone of an exchange in flight.
  virtual void Close(bool tell) = 0;
};

// `refuse`: answers the first request with 503, unless it is one of `always_answered`, and closes.
// With `tls`: a TLS connection.
std::shared_ptr<HttpConnection> MakeHttpConnection(std::shared_ptr<HttpConnectionHost> host,
                                                   HttpSocket socket, std::string peer, bool refuse,
                                                   boost::asio::ssl::context* tls);

}  // namespace parallelrun
