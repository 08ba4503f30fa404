// A blocking HTTP client for one server, over cpprestsdk. For callers' own threads: never call
// Send from an EventLoop's callback.
//
// Thread-safe; connections are kept and shared by all callers. A request may reach the server
// twice (a kept connection that breaks is retried by the library, whatever the method), so calls
// must be idempotent. Redirects are not followed.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/http_message.h"
#include "base/time.h"

namespace parallelrun {

struct HttpClientOptions {
  std::string base_url;                // "https://host:port"; a path is put before every path
  std::function<std::string()> token;  // asked for each request; "" sends no Authorization
  // PEM certificates: the only ones trusted. Empty: those of the system.
  std::string ca_pem;
  std::string user_agent;
  Duration idle_timeout = seconds(30);  // between two bytes of an answer
  size_t max_response_bytes = size_t{64} * 1024 * 1024;
};

class HttpClient {
 public:
  // kInvalid for a URL, certificate or user agent that cannot be used.
  static Result<std::unique_ptr<HttpClient>> Make(HttpClientOptions options);
  // Cancels, and waits for the calls in flight to return.
  ~HttpClient();

  // Sends `request` (its path and query must be encoded already; peer is not used) and waits for
  // the whole answer, `deadline` from now at most. Any status that the server answers is a value.
  // Errors: kTimeout (the deadline, or idle_timeout), kUnavailable (refused, reset, not trusted,
  // cancelled), kInvalid (a request that must not be sent), kInternal.
  Result<HttpResponse> Send(HttpRequest request, Duration deadline);

  // Makes all calls in flight, and all later ones, return kUnavailable at once.
  void Cancel();

 private:
  struct Impl;
  explicit HttpClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Gives cpprestsdk's pool 4 threads in place of 40 (which cost 3 times the CPU on small machines).
// Call once, first thing in main; later calls do nothing.
void InitHttpClientThreads();

}  // namespace parallelrun
