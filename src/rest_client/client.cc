#include "rest_client/client.h"

#include <cpprest/http_client.h>
#include <spdlog/fmt/fmt.h>
#include <strings.h>

#include <condition_variable>
#include <mutex>
#include <set>
#include <utility>

#include "base/escape.h"
#include "base/http/check_request.h"
#include "base/http/trust.h"
#include "rest_client/thread.h"
#include "rest_client/tls_source.h"
#include "rest_client/transfer.h"

namespace parallelrun::rest_client {
namespace {

namespace net = web::http;
using net::client::http_client;
using net::client::http_client_config;
using Transfer = RestStream::Transfer;
using Limit = std::chrono::steady_clock::time_point;

// A stream's silence is measured by its reader; the library's own time-out comes behind that, and
// also passes while a slow reader makes the sender wait.
constexpr Duration kStreamTimeout = seconds(600);

HttpResponse HeadOf(const net::http_response& response) {
  HttpResponse head;
  head.status = response.status_code();
  for (const auto& [name, value] : response.headers()) {
    if (strcasecmp(name.c_str(), "content-type") == 0) {
      head.content_type = value;
    } else {
      head.headers.push_back({name, value});
    }
  }
  return head;
}

bool IsIpv6(const web::uri& uri) {
  return uri.host().starts_with('[') && uri.host().ends_with(']');
}

uint16_t PortOf(const web::uri& uri) {
  constexpr uint16_t kHttp = 80;
  constexpr uint16_t kHttps = 443;
  if (!uri.is_port_default()) return static_cast<uint16_t>(uri.port());
  return uri.scheme() == "https" ? kHttps : kHttp;
}

// cpprestsdk looks the host up, and for it in the certificate, as it stands in the URL: an IPv6
// address must stand there without its brackets. It takes what follows the last colon as the port.
web::uri LibraryUrl(const std::string& base_url) {
  const web::uri uri(base_url);
  if (!IsIpv6(uri)) return uri;
  const std::string address = uri.host().substr(1, uri.host().size() - 2);
  return web::uri_builder(uri).set_host(address).set_port(PortOf(uri)).to_uri();
}

// Empty: what cpprestsdk writes. It checks the certificate against this header if there is one, and
// sends it as SNI, so that over TLS the address in brackets cannot stand here.
std::string HostHeader(const RestClientOptions& options) {
  const web::uri uri(options.base_url);
  if (!options.verify_host.empty() || uri.scheme() == "https" || !IsIpv6(uri)) {
    return options.verify_host;
  }
  return fmt::format("{}:{}", uri.host(), PortOf(uri));
}

http_client_config ConfigOf(const std::shared_ptr<TlsSource>& tls, Duration timeout) {
  http_client_config config;
  config.set_timeout(timeout);
  config.set_max_redirects(0);  // a token is for this server only
  config.set_ssl_context_callback(
      [tls](boost::asio::ssl::context& context) { tls->SetUp(context.native_handle()); });
  return config;
}

// The transfers of a client; outlives it while streams do.
struct Registry {
  std::mutex mutex;
  std::condition_variable idle;
  bool cancelled = false;
  size_t calls = 0;  // within Send or Open
  std::set<std::shared_ptr<Transfer>> transfers;
};

}  // namespace

struct RestClient::Impl {
  explicit Impl(RestClientOptions o)
      : options(std::move(o)),
        tls(std::make_shared<TlsSource>(options)),
        client(std::make_shared<http_client>(LibraryUrl(options.base_url),
                                             ConfigOf(tls, options.idle_timeout))),
        stream_client(std::make_shared<http_client>(LibraryUrl(options.base_url),
                                                    ConfigOf(tls, kStreamTimeout))) {}

  const RestClientOptions options;
  const std::string host_header = HostHeader(options);
  const std::shared_ptr<TlsSource> tls;
  const std::shared_ptr<http_client> client;
  const std::shared_ptr<http_client> stream_client;
  const std::shared_ptr<Registry> registry = std::make_shared<Registry>();

  std::shared_ptr<Transfer> Enter() {
    const std::lock_guard lock(registry->mutex);
    if (registry->cancelled) return nullptr;
    auto transfer = std::make_shared<Transfer>();
    registry->transfers.insert(transfer);
    ++registry->calls;
    return transfer;
  }

  // The call returns; a transfer that goes on as a stream stays known.
  void Leave(const std::shared_ptr<Transfer>& transfer, bool over) {
    const std::lock_guard lock(registry->mutex);
    if (over) registry->transfers.erase(transfer);
    --registry->calls;
    registry->idle.notify_all();
  }

  void Begin(const std::shared_ptr<http_client>& through, const std::shared_ptr<Transfer>& transfer,
             HttpRequest request, const std::string& token) {
    net::http_request message(request.method);
    std::string target = std::move(request.path);
    if (!request.query.empty()) target += "?" + request.query;
    message.set_request_uri(target);
    std::string content_type = "application/octet-stream";
    for (const HttpHeader& header : request.headers) {
      if (strcasecmp(header.name.c_str(), "content-type") == 0) {
        content_type = header.value;
      } else {
        message.headers().add(header.name, header.value);
      }
    }
    if (!host_header.empty()) message.headers().add("Host", host_header);
    if (!options.user_agent.empty()) message.headers().add("User-Agent", options.user_agent);
    if (!token.empty()) message.headers().add("Authorization", "Bearer " + token);
    const bool has_body = !request.body.empty() || request.method == "POST" ||
                          request.method == "PUT" || request.method == "PATCH";
    if (has_body) message.set_body(std::move(request.body), content_type);
    message.set_response_stream(transfer->body());
    PostToRestThread([through, message, transfer] {
      try {
        // The last continuation takes the task, not its value, and catches everything: cpprestsdk
        // ends the process for an exception that nobody looked at.
        through->request(message, transfer->token())
            .then([transfer](const net::http_response& response) {
              transfer->SetHead(HeadOf(response));
              return response.content_ready();
            })
            .then([transfer](const pplx::task<net::http_response>& task) {
              std::exception_ptr failure;
              try {
                task.get();
              } catch (...) {
                failure = std::current_exception();
              }
              transfer->SetDone(failure);
            });
      } catch (...) {
        transfer->SetDone(std::current_exception());
      }
    });
  }

  Result<HttpResponse> Receive(Transfer& transfer, Limit limit) const {
    Result<HttpResponse> response = transfer.WaitForHead(limit);
    if (!response.ok()) return response;
    const std::string_view length = response->Header("Content-Length");
    std::string& body = response->body;
    const auto too_large = [this] {
      return Error{Code::kInternal,
                   fmt::format("the answer is larger than {} bytes", options.max_response_bytes)};
    };
    if (std::strtoull(std::string(length).c_str(), nullptr, 10) > options.max_response_bytes) {
      return too_large();
    }
    while (true) {
      const Result<size_t> more = transfer.Read(body, limit);
      if (!more.ok()) return more.error();
      if (*more == 0) return response;
      if (body.size() > options.max_response_bytes) return too_large();
    }
  }

  // Checks and begins a call, runs `wait` on it and cleans up. `keep`: a good one goes on.
  template <typename T, typename Wait>
  Result<T> Run(const std::shared_ptr<http_client>& through, HttpRequest request, Duration deadline,
                bool keep, const Wait& wait) {
    const std::string place = fmt::format("{} {}{}", Printable(request.method, kShown),
                                          options.base_url, Printable(request.path, kShown));
    const std::string token = options.token ? options.token() : std::string();
    if (const Status fit = CheckRequest(request, token); !fit.ok()) return fit.error().With(place);
    const std::shared_ptr<Transfer> transfer = Enter();
    if (!transfer) return Error{Code::kUnavailable, place + ": the client is shutting down"};
    const Limit limit = std::chrono::steady_clock::now() + deadline;
    Result<T> result = Error{Code::kInternal, ""};
    try {
      Begin(through, transfer, std::move(request), token);
      result = wait(transfer, limit);
    } catch (const std::exception& e) {  // the library refused the request before sending it
      transfer->SetDone(nullptr);
      result = Error{Code::kInvalid, Printable(e.what(), kShown)};
    }
    const bool over = !result.ok() || !keep;
    if (over) transfer->End();
    Leave(transfer, over);
    if (result.ok()) return result;
    Error error = result.error();
    if (error.code == Code::kTimeout && error.message.empty()) {
      error.message = fmt::format("no answer within {}", HumanDuration(deadline));
    }
    return error.With(place);
  }
};

Result<std::unique_ptr<RestClient>> RestClient::Make(RestClientOptions options) {
  const std::string place = "HTTP client for " + Printable(options.base_url, kShown);
  if (!IsSafeHeader({"User-Agent", options.user_agent})) {
    return Error{Code::kInvalid, place + ": the user agent holds control characters"};
  }
  if (!IsSafeHeader({"Host", options.verify_host})) {
    return Error{Code::kInvalid, place + ": the name to verify holds control characters"};
  }
  if (!options.ca_pem.empty() && !IsUsablePem(options.ca_pem)) {
    return Error{Code::kInvalid, place +
                                     ": the CA holds no certificate; it must be PEM text that "
                                     "starts with -----BEGIN CERTIFICATE-----"};
  }
  InitRestThread();  // a client of the library's own makes the pool, with 40 threads
  try {
    const web::uri uri(options.base_url);
    if ((uri.scheme() != "http" && uri.scheme() != "https") || uri.host().empty()) {
      return Error{Code::kInvalid, place + ": write http://host:port or https://host:port"};
    }
    return std::unique_ptr<RestClient>(new RestClient(std::make_unique<Impl>(std::move(options))));
  } catch (const std::exception& e) {
    return Error{Code::kInvalid, place + ": " + Printable(e.what(), kShown)};
  }
}

RestClient::RestClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

RestClient::~RestClient() {
  Cancel();
  std::unique_lock lock(impl_->registry->mutex);
  impl_->registry->idle.wait(lock, [this] { return impl_->registry->calls == 0; });
  impl_->tls->Close();
}

Result<HttpResponse> RestClient::Send(HttpRequest request, Duration deadline) {
  return impl_->Run<HttpResponse>(impl_->client, std::move(request), deadline, false,
                                  [this](const std::shared_ptr<Transfer>& transfer, Limit limit) {
                                    return impl_->Receive(*transfer, limit);
                                  });
}

Result<std::unique_ptr<RestStream>> RestClient::Open(HttpRequest request, Duration deadline) {
  using Opened = std::unique_ptr<RestStream>;
  return impl_->Run<Opened>(
      impl_->stream_client, std::move(request), deadline, true,
      [this](const std::shared_ptr<Transfer>& transfer, Limit limit) -> Result<Opened> {
        const Result<HttpResponse> head = transfer->WaitForHead(limit);
        if (!head.ok()) return head.error();
        // The stream forgets itself, also when it outlives the client.
        return std::make_unique<RestStream>(
            std::shared_ptr<Transfer>(transfer.get(),
                                      [transfer, registry = impl_->registry](Transfer*) {
                                        transfer->End();
                                        const std::lock_guard lock(registry->mutex);
                                        registry->transfers.erase(transfer);
                                      }),
            *head);
      });
}

void RestClient::Cancel() {
  const std::lock_guard lock(impl_->registry->mutex);
  impl_->registry->cancelled = true;
  for (const auto& transfer : impl_->registry->transfers) transfer->Cancel();
}

RestStream::RestStream(std::shared_ptr<Transfer> transfer, HttpResponse head)
    : transfer_(std::move(transfer)), head_(std::move(head)) {}

RestStream::~RestStream() = default;

Result<size_t> RestStream::Read(std::string& out, Duration silence) {
  Result<size_t> result = transfer_->Read(out, std::chrono::steady_clock::now() + silence);
  if (!result.ok() && result.error().code == Code::kTimeout && result.error().message.empty()) {
    return Error{Code::kTimeout, fmt::format("no byte for {}", HumanDuration(silence))};
  }
  return result;
}

void RestStream::Cancel() { transfer_->Cancel(); }

}  // namespace parallelrun::rest_client
