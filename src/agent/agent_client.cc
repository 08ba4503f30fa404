#include "agent/agent_client.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "base/escape.h"
#include "base/version.h"

namespace parallelrun {
namespace {

constexpr Duration kLeaveTimeout = seconds(5);

const char* ReasonOf(AgentEnd end) {
  switch (end) {
    case AgentEnd::kFinished: return "finished";
    case AgentEnd::kDrained: return "drained";
    case AgentEnd::kGaveUp: return "gave up";
    default: return "lost";
  }
}

}  // namespace

Result<HttpClientOptions> ClientOptions(const AgentConfig& config) {
  HttpClientOptions options;
  options.base_url = config.url;
  options.token = [token = config.token] { return token; };
  // Exchanges carry fences, registrations and farewells an incarnation: twice is the same as once.
  options.repeat_posts = true;
  options.user_agent = std::string("parallelrun-agent/") + kVersion;
  if (!config.certificate_authority.empty()) {
    std::ifstream file(config.certificate_authority);
    std::stringstream pem;
    pem << file.rdbuf();
    if (!file || pem.str().empty()) {
      return Error{Code::kNotFound,
                   "cannot read the certificate authority " + config.certificate_authority};
    }
    options.ca_pem = pem.str();
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
  constexpr size_t kMaxShown = 1000;
  if (!response) return response.error().message;
  std::string words = response->body;
  const nlohmann::json body = nlohmann::json::parse(response->body, nullptr, false);
  if (body.is_object() && body.contains("error") && body["error"].is_object()) {
    const nlohmann::json message = body["error"].value("message", nlohmann::json());
    if (message.is_string()) words = message.get<std::string>();
  }
  return std::to_string(response->status) + " " + Printable(words, kMaxShown);
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

void Leave(HttpClient& client, uint32_t node, const Incarnation& incarnation, AgentEnd end) {
  HttpRequest request;
  request.method = "POST";
  request.path = "/v1/nodes/" + std::to_string(node) + "/leave";
  request.headers.push_back({"Content-Type", "application/json"});
  request.body = nlohmann::json{{"epoch", incarnation.epoch},
                                {"incarnation", incarnation.number},
                                {"reason", ReasonOf(end)}}
                     .dump();
  const Result<HttpResponse> response = client.Send(std::move(request), kLeaveTimeout);
  if (!response) spdlog::debug("leaving: {}", response.error().message);
}

}  // namespace parallelrun
