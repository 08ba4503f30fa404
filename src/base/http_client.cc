#include "base/http_client.h"

#include <cpprest/containerstream.h>
#include <cpprest/http_client.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <pplx/threadpool.h>
#include <spdlog/fmt/fmt.h>
#include <strings.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "base/escape.h"

namespace parallelrun {
namespace {

namespace net = web::http;
using net::client::http_client;
using net::client::http_client_config;

constexpr int kPoolThreads = 4;
// A cancelled call ends within milliseconds, but a name look-up cannot be cancelled: after this it
// is left to end by itself.
constexpr Duration kCancelGrace = milliseconds(200);
constexpr size_t kShown = 300;  // of a library's message

// One call. Held by the caller and by cpprestsdk's continuation, whoever ends later.
struct Call {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  bool cancelled = false;  // by Cancel()
  net::http_response response;
  std::exception_ptr failure;
  pplx::cancellation_token_source source;
  concurrency::streams::container_buffer<std::vector<uint8_t>> body;
};

// Trusts the PEM certificates and nothing else. False if there is none in it.
bool TrustOnly(SSL_CTX* context, const std::string& pem) {
  // A new store: cpprestsdk has put the system's certificates into the old one.
  X509_STORE* store = X509_STORE_new();
  if (store == nullptr) return false;
  SSL_CTX_set_cert_store(context, store);  // takes ownership
  const std::unique_ptr<BIO, int (*)(BIO*)> bio(
      BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free);
  int count = 0;
  while (X509* certificate = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) {
    count += X509_STORE_add_cert(store, certificate);
    X509_free(certificate);
  }
  ERR_clear_error();  // the end of the text is left there as an error, for others to find
  return count > 0;
}

bool IsUsablePem(const std::string& pem) {
  const std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context(SSL_CTX_new(TLS_client_method()),
                                                             SSL_CTX_free);
  return context && TrustOnly(context.get(), pem);
}

Error ErrorOf(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const net::http_exception& e) {
    const bool timeout = e.error_code() == std::errc::timed_out;
    return {timeout ? Code::kTimeout : Code::kUnavailable,
            timeout ? "no byte for the idle time-out" : Printable(e.what(), kShown)};
  } catch (const std::exception& e) {
    return {Code::kInternal, Printable(e.what(), kShown)};
  } catch (...) {
    return {Code::kInternal, "unknown failure"};
  }
}

Status CheckRequest(const HttpRequest& request, const std::string& token) {
  const auto is_plain = [](unsigned char c) { return c > 0x20 && c < 0x7f; };
  const bool plain_target = std::all_of(request.path.begin(), request.path.end(), is_plain) &&
                            std::all_of(request.query.begin(), request.query.end(), is_plain);
  if (request.path.empty() || request.path[0] != '/' || !plain_target) {
    return Error{Code::kInvalid, "the path must start with / and be percent-encoded"};
  }
  for (const HttpHeader& header : request.headers) {
    if (!IsSafeHeader(header)) {
      return Error{Code::kInvalid, "header " + Printable(header.name, kShown) +
                                       " holds bytes that are not allowed in headers"};
    }
  }
  if (!IsSafeHeader({"Authorization", token})) {
    return Error{Code::kInvalid, "the bearer token holds bytes that are not allowed in headers"};
  }
  return {};
}

}  // namespace

struct HttpClient::Impl {
  Impl(HttpClientOptions o, const http_client_config& config)
      : options(std::move(o)), client(options.base_url, config) {}

  const HttpClientOptions options;
  http_client client;
  std::mutex mutex;
  std::condition_variable idle;
  bool cancelled = false;
  std::set<std::shared_ptr<Call>> calls;

  std::shared_ptr<Call> Enter() {
    const std::lock_guard lock(mutex);
    if (cancelled) return nullptr;
    auto call = std::make_shared<Call>();
    calls.insert(call);
    return call;
  }

  void Leave(const std::shared_ptr<Call>& call) {
    const std::lock_guard lock(mutex);
    calls.erase(call);
    idle.notify_all();
  }

  void Begin(const std::shared_ptr<Call>& call, HttpRequest request, const std::string& token) {
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
    if (!options.user_agent.empty()) message.headers().add("User-Agent", options.user_agent);
    if (!token.empty()) message.headers().add("Authorization", "Bearer " + token);
    const bool has_body = !request.body.empty() || request.method == "POST" ||
                          request.method == "PUT" || request.method == "PATCH";
    if (has_body) message.set_body(std::move(request.body), content_type);
    message.set_response_stream(call->body.create_ostream());
    const size_t limit = options.max_response_bytes;
    // The last continuation takes the task, not its value, and catches everything: cpprestsdk ends
    // the process for an exception that nobody looked at.
    client.request(message, call->source.get_token())
        .then([limit](const net::http_response& response) {
          if (response.headers().content_length() > limit) {
            throw std::length_error(fmt::format("the answer is larger than {} bytes", limit));
          }
          return response.content_ready();
        })
        .then([call](const pplx::task<net::http_response>& task) {
          const std::lock_guard lock(call->mutex);
          try {
            call->response = task.get();
          } catch (...) {
            call->failure = std::current_exception();
          }
          call->done = true;
          call->changed.notify_all();
        });
  }

  Result<HttpResponse> Wait(Call& call, Duration deadline) {
    const auto limit = std::chrono::steady_clock::now() + deadline;
    std::unique_lock lock(call.mutex);
    const auto over = [&call] { return call.done || call.cancelled; };
    const bool timed_out = !call.changed.wait_until(lock, limit, over);
    if (!call.done) {
      lock.unlock();
      call.source.cancel();
      lock.lock();
      call.changed.wait_for(lock, kCancelGrace, [&call] { return call.done; });
    }
    if (call.cancelled) return Error{Code::kUnavailable, "the call was cancelled"};
    if (timed_out) {
      return Error{Code::kTimeout, fmt::format("no answer within {}", HumanDuration(deadline))};
    }
    if (call.failure) return ErrorOf(call.failure);
    HttpResponse response;
    response.status = call.response.status_code();
    for (const auto& [name, value] : call.response.headers()) {
      if (strcasecmp(name.c_str(), "content-type") == 0) {
        response.content_type = value;
      } else {
        response.headers.push_back({name, value});
      }
    }
    const std::vector<uint8_t>& body = call.body.collection();
    response.body.assign(body.begin(), body.end());
    return response;
  }
};

Result<std::unique_ptr<HttpClient>> HttpClient::Make(HttpClientOptions options) {
  const std::string place = "HTTP client for " + Printable(options.base_url, kShown);
  if (!IsSafeHeader({"User-Agent", options.user_agent})) {
    return Error{Code::kInvalid, place + ": the user agent holds control characters"};
  }
  if (!options.ca_pem.empty() && !IsUsablePem(options.ca_pem)) {
    return Error{Code::kInvalid, place +
                                     ": the CA holds no certificate; it must be PEM text that "
                                     "starts with -----BEGIN CERTIFICATE-----"};
  }
  try {
    const web::uri uri(options.base_url);
    if ((uri.scheme() != "http" && uri.scheme() != "https") || uri.host().empty()) {
      return Error{Code::kInvalid, place + ": write http://host:port or https://host:port"};
    }
    http_client_config config;
    config.set_timeout(options.idle_timeout);
    config.set_max_redirects(0);  // a token is for this server only
    config.set_ssl_context_callback([pem = options.ca_pem](boost::asio::ssl::context& context) {
      SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_2_VERSION);
      // Must not throw. If it fails, nothing is trusted and the handshake fails.
      if (!pem.empty()) TrustOnly(context.native_handle(), pem);
    });
    return std::unique_ptr<HttpClient>(
        new HttpClient(std::make_unique<Impl>(std::move(options), config)));
  } catch (const std::exception& e) {
    return Error{Code::kInvalid, place + ": " + Printable(e.what(), kShown)};
  }
}

HttpClient::HttpClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

HttpClient::~HttpClient() {
  Cancel();
  std::unique_lock lock(impl_->mutex);
  impl_->idle.wait(lock, [this] { return impl_->calls.empty(); });
}

Result<HttpResponse> HttpClient::Send(HttpRequest request, Duration deadline) {
  const std::string place = fmt::format("{} {}{}", Printable(request.method, kShown),
                                        impl_->options.base_url, Printable(request.path, kShown));
  const std::string token = impl_->options.token ? impl_->options.token() : std::string();
  if (const Status fit = CheckRequest(request, token); !fit.ok()) return fit.error().With(place);
  const std::shared_ptr<Call> call = impl_->Enter();
  if (!call) return Error{Code::kUnavailable, place + ": the client is shutting down"};
  Result<HttpResponse> result = HttpResponse{};
  try {
    impl_->Begin(call, std::move(request), token);
    result = impl_->Wait(*call, deadline);
  } catch (const std::exception& e) {  // the library refused the request before sending it
    result = Error{Code::kInvalid, Printable(e.what(), kShown)};
  }
  impl_->Leave(call);
  if (!result.ok()) return result.error().With(place);
  return result;
}

void HttpClient::Cancel() {
  std::set<std::shared_ptr<Call>> calls;
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->cancelled = true;
    calls = impl_->calls;
  }
  for (const auto& call : calls) {
    {
      const std::lock_guard lock(call->mutex);
      call->cancelled = true;
    }
    call->changed.notify_all();  // the waiting thread cancels the transfer
  }
}

void InitHttpClientThreads() {
  static std::once_flag once;
  std::call_once(once, [] {
    // Before the pool: what is made first is torn down last at exit, and the pool's threads must
    // not outlive the OpenSSL that they use.
    OPENSSL_init_ssl(0, nullptr);
    try {
      crossplat::threadpool::initialize_with_threads(kPoolThreads);
    } catch (const std::exception&) {
      // Something has used the pool already: it keeps its size.
    }
  });
}

}  // namespace parallelrun
