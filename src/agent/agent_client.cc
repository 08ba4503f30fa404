#include "agent/agent_client.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/escape.h"
#include "base/json.h"
#include "base/small_file.h"
#include "base/version.h"

namespace parallelrun::agent {
namespace {

constexpr Duration kLeaveTimeout = seconds(5);
constexpr Duration kSideUrlsTimeout = seconds(60);  // the coordinator may have to wait for a store

const char* ReasonOf(AgentEnd end) {
  switch (end) {
    case AgentEnd::kFinished: return "finished";
    case AgentEnd::kDrained: return "drained";
    case AgentEnd::kGaveUp: return "gave up";
    default: return "lost";
  }
}

constexpr size_t kMaxAuthority = size_t{1} << 20;

}  // namespace

Result<HttpClientOptions> ClientOptions(const AgentConfig& config) {
  HttpClientOptions options;
  options.base_url = config.url;
  options.token = [token = config.token] { return token; };
  // Exchanges carry fences, registrations and farewells an incarnation: twice is the same as once.
  options.repeat_posts = true;
  options.user_agent = std::string("parallelrun-agent/") + kVersion;
  if (!config.certificate_authority.empty()) {
    Result<std::string> pem =
        ReadSmallFile(config.certificate_authority, kMaxAuthority, O_NONBLOCK);
    if (!pem.ok()) return pem.error().With("the certificate authority");
    if (pem->empty()) {
      return Error{Code::kInvalid, "the certificate authority " +
                                       Printable(config.certificate_authority, kShownLong) +
                                       " is empty"};
    }
    options.ca_pem = *std::move(pem);
  }
  return options;
}

CallFailure FailureOf(CallKind call, const Result<HttpResponse>& response) {
  if (!response) return CallFailure::kUnreachable;
  switch (response->status) {
    case 503: return CallFailure::kBusy;
    case 409: return call == CallKind::kRegister ? CallFailure::kRefused : CallFailure::kStale;
    case 400:
    case 401:
    case 403:
    case 404:
    case 413: return CallFailure::kRefused;
    default: return CallFailure::kUnreachable;
  }
}

std::string FailureWords(const Result<HttpResponse>& response) {
  if (!response) return response.error().message;
  std::string words = response->body;
  const nlohmann::json body = ParseJson(response->body).value_or(nullptr);
  const nlohmann::json& message = lenient::AtPath(body, "/error/message");
  if (message.is_string()) words = message.get<std::string>();
  return std::to_string(response->status) + " " + Printable(words, kShownLongest);
}

Duration CallLimits::Of(CallKind call, Duration park) const {
  return call == CallKind::kRegister ? register_ : exchange_ + park;
}

void CallLimits::OnResult(CallKind call, const Result<HttpResponse>& response) {
  const bool registers = call == CallKind::kRegister;
  Duration& limit = registers ? register_ : exchange_;
  const bool silent = !response && response.error().code == Code::kTimeout;
  if (silent && limit < kMost) {
    limit = std::min(2 * limit, kMost);  // it may be a slow one
  } else {
    limit = response.ok() && !registers ? kMost : kFirst;
  }
}

void Leave(HttpClient& client, uint32_t node, const job::Incarnation& incarnation, AgentEnd end,
           const StrayFiles::Found& stray) {
  HttpRequest request;
  request.method = "POST";
  request.path = "/v1/nodes/" + std::to_string(node) + "/leave";
  request.headers.push_back({"Content-Type", "application/json"});
  request.body = nlohmann::json{{"epoch", incarnation.epoch},
                                {"incarnation", incarnation.number},
                                {"reason", ReasonOf(end)},
                                {"strayFiles", {{"count", stray.count}, {"first", stray.first}}}}
                     .dump();
  const Result<HttpResponse> response = client.Send(std::move(request), kLeaveTimeout);
  if (!response) spdlog::debug("leaving: {}", response.error().message);
}

Result<job::SideUrls> AskForSideUrls(HttpClient& client, uint32_t node,
                                     const job::SideUrlsWanted& wanted,
                                     const std::stop_token& stop) {
  const std::stop_callback end(stop, [&client] { client.Cancel(); });
  HttpRequest request;
  request.method = "POST";
  request.path = "/v1/nodes/" + std::to_string(node) + "/side-input-urls";
  request.headers.push_back({"Content-Type", "application/json"});
  request.body = job::SideUrlsWantedText(wanted);
  const auto none = [](const std::string& why) {
    return Error{Code::kUnavailable, "the coordinator gives no URLs: " + why};
  };
  const Result<HttpResponse> response = client.Send(std::move(request), kSideUrlsTimeout);
  if (!response || response->status != 200) return none(FailureWords(response));
  Result<job::SideUrls> urls = job::ParseSideUrls(response->body);
  return urls.ok() ? std::move(urls) : none(urls.error().message);
}

Result<job::SideUploads> AskForSideUploads(HttpClient& client, uint32_t node,
                                           const job::SideUploadsWanted& wanted,
                                           const std::stop_token& stop) {
  const std::stop_callback end(stop, [&client] { client.Cancel(); });
  HttpRequest request;
  request.method = "POST";
  request.path = "/v1/nodes/" + std::to_string(node) + "/side-files";
  request.headers.push_back({"Content-Type", "application/json"});
  request.body = job::SideUploadsWantedText(wanted);
  const auto none = [](Code code, const std::string& why) {
    return Error{code, "the coordinator begins no uploads: " + why};
  };
  const Result<HttpResponse> response = client.Send(std::move(request), kSideUrlsTimeout);
  if (!response) return none(Code::kUnavailable, FailureWords(response));
  switch (response->status) {
    case 200: break;
    case 409: return none(Code::kStale, FailureWords(response));
    case 404: return none(Code::kNotFound, FailureWords(response));
    case 400:
    case 403:
    case 413: return none(Code::kInvalid, FailureWords(response));
    default: return none(Code::kUnavailable, FailureWords(response));
  }
  Result<job::SideUploads> uploads = job::ParseSideUploads(response->body);
  return uploads.ok() ? std::move(uploads) : none(Code::kUnavailable, uploads.error().message);
}

}  // namespace parallelrun::agent
