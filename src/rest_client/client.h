// A blocking HTTP client for one server, over cpprestsdk. For callers' own threads: never call
// Send, Open or Read from an EventLoop's callback.
//
// Thread-safe; connections are kept and shared by all callers. A request may reach the server
// twice (a kept connection that breaks is retried by the library, whatever the method), so calls
// must be idempotent. Redirects are not followed.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/http/message.h"
#include "base/time.h"

namespace parallelrun::rest_client {

// What a TLS connection is made with, as PEM text.
struct RestTls {
  std::string ca;           // the only certificates trusted; empty: those of the system
  std::string certificate;  // of this client, with its chain; empty: none is shown
  std::string key;
};

struct RestClientOptions {
  // "https://host:port", "https://[ipv6]:port"; a path is put before every path.
  std::string base_url;
  std::function<std::string()> token;  // asked for each request; "" sends no Authorization
  // PEM certificates: the only ones trusted. Empty: those of the system.
  std::string ca_pem;
  // In place of ca_pem: asked for each new connection, so that certificates may change on the way.
  // Runs on any thread, and not after the client is destroyed. When what it says cannot be used,
  // the handshake fails.
  std::function<RestTls()> tls;
  // The name that the server's certificate must carry, in place of the host of base_url; it is
  // also sent as SNI and as Host.
  std::string verify_host;
  std::string user_agent;
  Duration idle_timeout = seconds(30);                   // between two bytes of an answer
  size_t max_response_bytes = size_t{64} * 1024 * 1024;  // of Send; a stream has no end
};

// An answer whose body is read piece by piece. Read is for one thread, Cancel for any. At most
// 1 MiB waits to be read: a slow reader slows the sender down. Destroying it closes the connection.
class RestStream {
 public:
  class Transfer;  // internal
  RestStream(std::shared_ptr<Transfer> transfer, HttpResponse head);
  ~RestStream();
  RestStream(const RestStream&) = delete;
  RestStream& operator=(const RestStream&) = delete;

  // Status and headers, without a body.
  const HttpResponse& head() const { return head_; }

  // Appends to `out` what has come, waiting for at least one byte. 0: the body ended as it should.
  // Errors: kTimeout (no byte for `silence`), kUnavailable (the connection broke, or Cancel).
  Result<size_t> Read(std::string& out, Duration silence);
  // Makes Read, now and later, return kUnavailable at once.
  void Cancel();

 private:
  std::shared_ptr<Transfer> transfer_;
  HttpResponse head_;
};

class RestClient {
 public:
  // kInvalid for a URL, certificate or user agent that cannot be used.
  static Result<std::unique_ptr<RestClient>> Make(RestClientOptions options);
  // Cancels, and waits for the calls in flight to return.
  ~RestClient();

  // Sends `request` (its path and query must be encoded already; peer is not used) and waits for
  // the whole answer, `deadline` from now at most. Any status that the server answers is a value.
  // Errors: kTimeout (the deadline, or idle_timeout), kUnavailable (refused, reset, not trusted,
  // cancelled), kInvalid (a request that must not be sent), kInternal.
  Result<HttpResponse> Send(HttpRequest request, Duration deadline);

  // Sends `request` and waits for the head of the answer, `deadline` from now at most. Errors as
  // Send's. The stream may outlive the client, which cancels it.
  Result<std::unique_ptr<RestStream>> Open(HttpRequest request, Duration deadline);

  // Makes all calls in flight, and all later ones, return kUnavailable at once.
  void Cancel();

 private:
  struct Impl;
  explicit RestClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Starts the thread that all clients of the process share. Call it first thing in main, so that it
// ends last at exit and takes main's signal mask; the first call of a client does so otherwise.
void InitRestThread();

}  // namespace parallelrun::rest_client
