#include "base/http/client.h"

#include <spdlog/fmt/fmt.h>

#include <iterator>
#include <utility>

#include "base/escape.h"
#include "base/http/check_request.h"
#include "base/http/client/answer.h"
#include "base/http/client/cancellation.h"
#include "base/http/client/connect.h"
#include "base/http/client/pool.h"
#include "base/http/client/sending.h"
#include "base/http/client/talk.h"
#include "base/http/client/url.h"
#include "base/http/trust.h"

namespace parallelrun {
namespace {

SteadyTime Now() { return std::chrono::steady_clock::now(); }

}  // namespace

struct HttpClient::Impl {
  Impl(HttpClientOptions o, const HttpUrl& u)
      : options(std::move(o)),
        url(u),
        connector(url, options.ca_pem, options.connect_timeout, options.handshake_timeout,
                  cancellation),
        pool(options.max_connections, options.keep_limit) {}

  std::string Head(const HttpCall& call, const std::string& token) const;
  bool MayRepeat(const HttpRequest& request) const {
    return options.repeat_posts || (request.method != "POST" && request.method != "PATCH");
  }
  Result<HttpResponse> Try(const HttpCall& call, const std::string& head, SteadyTime limit,
                           std::unique_ptr<Wire>& wire, bool& unheard);
  Result<HttpResponse> Send(const HttpCall& call, SteadyTime limit);

  const HttpClientOptions options;
  const HttpUrl url;
  Cancellation cancellation;
  Connector connector;
  Pool pool;
};

std::string HttpClient::Impl::Head(const HttpCall& call, const std::string& token) const {
  const HttpRequest& request = call.request;
  std::string head;
  head.reserve(512);
  auto out = std::back_inserter(head);
  fmt::format_to(out, "{} {}{}", request.method, url.prefix, request.path);
  if (!request.query.empty()) fmt::format_to(out, "?{}", request.query);
  fmt::format_to(out, " HTTP/1.1\r\nHost: {}\r\n", url.HostHeader());
  for (const HttpHeader& header : request.headers) {
    fmt::format_to(out, "{}: {}\r\n", header.name, header.value);
  }
  if (!options.user_agent.empty()) fmt::format_to(out, "User-Agent: {}\r\n", options.user_agent);
  if (!token.empty()) fmt::format_to(out, "Authorization: Bearer {}\r\n", token);
  const uint64_t size = call.file ? call.file->size : request.body.size();
  const bool has_body = call.file || size > 0 || request.method == "POST" ||
                        request.method == "PUT" || request.method == "PATCH";
  if (has_body) fmt::format_to(out, "Content-Length: {}\r\n", size);
  return head + "\r\n";
}

// On `wire`, or on a new connection in its place; null when it may not be used again. `unheard`: it
// was closed before a byte of an answer came.
Result<HttpResponse> HttpClient::Impl::Try(const HttpCall& call, const std::string& head,
                                           SteadyTime limit, std::unique_ptr<Wire>& wire,
                                           bool& unheard) {
  if (!wire) {
    Result<std::unique_ptr<Wire>> made = connector.Connect(limit);
    if (!made) return made.error();
    wire = std::move(*made);
  }
  Answer answer(
      {call.request.method == "HEAD", options.max_response_bytes, call.sink, call.max_sink_bytes});
  Sending sending(head, call);
  const TalkLimits limits{limit, options.first_byte_timeout, options.idle_timeout};
  const Result<bool> keep = Talk(*wire, sending, answer, limits).Run();
  if (!keep || !*keep) wire.reset();
  if (keep) return std::move(answer.response());
  unheard = keep.error().code == Code::kUnavailable && !answer.heard();
  return keep.error();
}

Result<HttpResponse> HttpClient::Impl::Send(const HttpCall& call, SteadyTime limit) {
  const std::string token = options.token ? options.token() : std::string();
  if (const Status fit = CheckRequest(call.request, token); !fit.ok()) return fit.error();
  Result<std::unique_ptr<Wire>> place = pool.Enter(Now(), limit);
  if (!place) return place.error();
  std::unique_ptr<Wire> wire = std::move(*place);
  const bool kept = wire != nullptr;
  const std::string head = Head(call, token);
  bool unheard = false;
  Result<HttpResponse> response = Try(call, head, limit, wire, unheard);
  if (unheard && kept && MayRepeat(call.request) && !cancellation.cancelled()) {
    pool.Clear();
    response = Try(call, head, limit, wire, unheard);
  }
  const bool broke = !response && (response.error().code == Code::kUnavailable ||
                                   response.error().code == Code::kTimeout);
  if (broke) pool.Clear();
  pool.Leave(std::move(wire), Now());
  return response;
}

Result<std::unique_ptr<HttpClient>> HttpClient::Make(HttpClientOptions options) {
  const auto invalid = [place = "HTTP client for " + Printable(options.base_url, kShown)](
                           Code code, const std::string& why) {
    return Error{code, place + ": " + why};
  };
  if (!IsSafeHeader({"User-Agent", options.user_agent})) {
    return invalid(Code::kInvalid, "the user agent holds control characters");
  }
  if (!options.ca_pem.empty() && !IsUsablePem(options.ca_pem)) {
    return invalid(Code::kInvalid,
                   "the CA holds no certificate; it must be PEM text that starts with -----BEGIN "
                   "CERTIFICATE-----");
  }
  const Result<HttpUrl> url = ParseHttpUrl(options.base_url);
  if (!url) return invalid(url.error().code, url.error().message);
  auto impl = std::make_unique<Impl>(std::move(options), *url);
  if (!impl->cancellation.ok()) {
    return invalid(Code::kInternal, "the process may open no more files; raise its limit");
  }
  return std::unique_ptr<HttpClient>(new HttpClient(std::move(impl)));
}

HttpClient::HttpClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

HttpClient::~HttpClient() {
  Cancel();
  impl_->pool.WaitUntilLeft();
}

Result<HttpResponse> HttpClient::Send(const HttpCall& call, Duration deadline) {
  Result<HttpResponse> response = impl_->Send(call, Now() + deadline);
  if (response) return response;
  Error error = response.error();
  if (error.code == Code::kTimeout && error.message.empty()) {
    error.message = fmt::format("no answer within {}", HumanDuration(deadline));
  }
  return error.With(fmt::format("{} {}{}", Printable(call.request.method, kShown),
                                impl_->options.base_url, Printable(call.request.path, kShown)));
}

Result<HttpResponse> HttpClient::Send(HttpRequest request, Duration deadline) {
  HttpCall call;
  call.request = std::move(request);
  return Send(call, deadline);
}

void HttpClient::Cancel() {
  impl_->cancellation.Cancel();
  impl_->connector.Cancel();
  impl_->pool.Cancel();
}

}  // namespace parallelrun
