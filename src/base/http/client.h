// A blocking HTTP/1.1 client for one server: what moves data goes through it. For callers' own
// threads: never call Send from an EventLoop's callback.
//
// It has no thread and no event loop. A call is a loop on its caller's thread over two descriptors:
// its connection, and the one that Cancel makes ready. So back-pressure is nothing to build (who
// does not read does not receive), a call that is over has left nothing running, and an exchange
// costs four system calls. Only a name is looked up on another thread (client/names.h), as nothing
// can end that.
//
// Thread-safety: all of it. Connections are kept and shared by all callers. Redirects are not
// followed: a token is for this server only. A request that went out on a kept connection, and
// found it closed before the first byte of an answer, is sent once more on a new one, if its method
// may reach the server twice (all but POST and PATCH, or with `repeat_posts` these too).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/http/message.h"
#include "base/time.h"

namespace parallelrun {

struct HttpClientOptions {
  // "https://host:port", "https://[ipv6]:port"; a path is put before every path.
  std::string base_url;
  // The bearer token, asked for each request. With none, or "", a request may bring an
  // Authorization of its own, as one that is signed does.
  std::function<std::string()> token;
  // PEM certificates: the only ones trusted. Empty: those of the system. Read once.
  std::string ca_pem;
  std::string user_agent;
  bool repeat_posts = false;   // every POST of this client may reach its server twice
  size_t max_connections = 8;  // one more call waits for one of them
  // An idle connection is closed after this. Below the 75 s after which our server does.
  Duration keep_limit = seconds(60);

  Duration connect_timeout = seconds(10);  // to one address
  Duration handshake_timeout = seconds(10);
  Duration first_byte_timeout = seconds(30);  // of an answer, since the request is out
  Duration idle_timeout = seconds(30);        // without a byte, of the request or of the answer
  size_t max_response_bytes = size_t{64} * 1024 * 1024;  // of HttpResponse::body
};

// Bytes of a file, read with pread while they are sent. The descriptor stays the caller's.
struct HttpFileRange {
  int fd = -1;
  uint64_t offset = 0;
  uint64_t size = 0;
};

struct HttpCall {
  HttpRequest request;  // its path and query must be encoded already; peer is not used
  // Sent as the body, in place of request.body.
  std::optional<HttpFileRange> file;
  // Takes the body of an answer 2xx, piece by piece as it comes, in place of HttpResponse::body; an
  // error of it ends the call with that error. Runs on the caller's thread; while it works, nothing
  // is received. A call that fails may have given it a part.
  std::function<Status(std::string_view)> sink;
  uint64_t max_sink_bytes = 0;  // more is an error
};

class HttpClient {
 public:
  // kInvalid for a URL, certificate or user agent that cannot be used.
  static Result<std::unique_ptr<HttpClient>> Make(HttpClientOptions options);
  // Cancels, and waits for the calls in flight to return.
  ~HttpClient();

  // Sends the request and waits for the whole answer, `deadline` from now at most. Any status that
  // the server answers is a value.
  // Errors: kTimeout (the deadline, or a time-out of the options), kUnavailable (refused, reset,
  // not trusted, not HTTP, cancelled), kInvalid (a request that must not be sent, a file that is
  // shorter than its range), kInternal (an answer above its bound), the sink's.
  Result<HttpResponse> Send(const HttpCall& call, Duration deadline);
  Result<HttpResponse> Send(HttpRequest request, Duration deadline);

  // Makes all calls in flight, and all later ones, return kUnavailable at once.
  void Cancel();

 private:
  struct Impl;
  explicit HttpClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace parallelrun
