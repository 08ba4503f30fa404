#include "store/azure_blob/credentials.h"

#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

#include <functional>
#include <variant>

#include "base/escape.h"
#include "base/http/client.h"
#include "base/http/target.h"
#include "base/pause.h"
#include "base/random.h"
#include "base/small_file.h"
#include "store/azure_blob/answers.h"
#include "store/objects/retry.h"
#include "store/objects/validity.h"

namespace parallelrun::store::azure_blob {
namespace {

constexpr size_t kMostAnswer = 256 * 1024;
constexpr size_t kMostTokenFile = 1024 * 1024;
constexpr Duration kDeadline = seconds(10);       // of one request
constexpr Duration kRetry = seconds(10);          // after a renewal that failed
constexpr Duration kUsualLife = seconds(60 * 5);  // of a token that does not say it
constexpr RetryLimits kLimits{3, milliseconds(100), seconds(2), seconds(15)};

Result<std::string> TokenIn(const std::string& file) {
  Result<std::string> text =
      ReadSmallFile(file, kMostTokenFile, O_NONBLOCK);  // a pipe must not hold us
  if (!text.ok()) return text.error();
  while (!text->empty() && (text->back() == '\n' || text->back() == '\r')) text->pop_back();
  return text;
}

// Any answer that is not worth another try.
Result<HttpResponse> Ask(HttpClient& client, const HttpRequest& request,
                         const std::stop_token& stop) {
  Attempts attempts;
  for (const auto begin = std::chrono::steady_clock::now();;) {
    Result<HttpResponse> response = client.Send(request, kDeadline);
    const Outcome outcome = response.ok() ? OutcomeOfStatus(response->status) : Outcome::kBroken;
    attempts.since_first =
        std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - begin);
    const std::optional<Duration> wait =
        NextWait(outcome, attempts, kLimits, std::nullopt, RandomU64());
    if (!wait || !Pause(*wait, stop)) return response;
  }
}

Result<Token> FetchToken(const WorkloadIdentity& identity, const std::stop_token& stop) {
  const Result<std::string> assertion = TokenIn(identity.token_file);
  if (!assertion.ok()) return assertion.error();
  HttpClientOptions options;
  options.base_url = identity.authority;
  options.repeat_posts = true;  // to be given a token twice does no harm
  options.max_response_bytes = kMostAnswer;
  options.connect_timeout = options.first_byte_timeout = kDeadline;
  Result<std::unique_ptr<HttpClient>> client = HttpClient::Make(std::move(options));
  if (!client.ok()) return client.error();
  const std::stop_callback<std::function<void()>> on_stop(stop, [&] { (*client)->Cancel(); });
  HttpRequest request;
  request.method = "POST";
  request.path = fmt::format("/{}/oauth2/v2.0/token", PercentEncode(identity.tenant));
  request.headers = {{"Content-Type", "application/x-www-form-urlencoded"}};
  request.body = fmt::format(
      "grant_type=client_credentials&client_id={}&scope={}&client_assertion_type={}"
      "&client_assertion={}",
      PercentEncode(identity.client), PercentEncode("https://storage.azure.com/.default"),
      PercentEncode("urn:ietf:params:oauth:client-assertion-type:jwt-bearer"),
      PercentEncode(*assertion));
  const Result<HttpResponse> response = Ask(**client, request, stop);
  if (!response.ok()) return response.error().With(Printable(identity.authority, kShownLong));
  if (response->status == 200) return ParseToken(response->body);
  const bool later = OutcomeOfStatus(response->status) != Outcome::kFinal;
  return Error{later ? Code::kUnavailable : Code::kPermission,
               fmt::format("{} answered {} {}; does the identity trust this service account?",
                           Printable(identity.authority, kShownLong), response->status,
                           Printable(ParseTokenError(response->body), kShownLong))};
}

}  // namespace

Result<Proof> Credentials::Get() {
  if (const auto* key = std::get_if<SharedKey>(&source_.from)) return Proof(*key);
  if (const auto* sas = std::get_if<Sas>(&source_.from)) return Proof(*sas);
  const std::lock_guard lock(mutex_);
  const Instant now = clock_->Now();
  if (held_ && now < renew_) return Proof(*held_);
  Result<Token> token = FetchToken(std::get<WorkloadIdentity>(source_.from), stop_);
  if (!token.ok()) {
    const Error error = token.error().With("credentials for Azure: " + source_.told);
    if (!held_ || now >= end_) return error;
    spdlog::warn("{}; the token of before still serves", error.message);
    renew_ = now + kRetry;
    return Proof(*held_);
  }
  const Validity validity = *ValidityOf(token->life.value_or(kUsualLife));
  held_ = Bearer{std::move(token->text)};
  renew_ = now + validity.renew;
  end_ = now + validity.end;
  return Proof(*held_);
}

bool Credentials::Ended(const Proof& proof) {
  const auto* bearer = std::get_if<Bearer>(&proof);
  if (bearer == nullptr) return false;
  const std::lock_guard lock(mutex_);
  if (held_ == *bearer) held_.reset();
  return true;
}

}  // namespace parallelrun::store::azure_blob
