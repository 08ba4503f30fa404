// parallelrun-operator: see docs/operator.md and --help. Exit codes: 0 it was asked to stop, 1 it
// lost its lease or could not stop in time, 2 it cannot start.
#include <malloc.h>
#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>

#include "base/log.h"
#include "base/version.h"
#include "kube/config.h"
#include "operator/operator.h"
#include "rest_client/client.h"

namespace parallelrun::operators {
namespace {

// For `helm test` and the like, since the image has no other program.
// Why the operator there is not ready; "" when it is.
std::string WhyNotReady(const std::string& url) {
  const size_t host = url.find("://");
  const size_t path = host == std::string::npos ? host : url.find('/', host + 3);
  rest_client::RestClientOptions options;
  options.base_url = url.substr(0, path);
  HttpRequest request;
  request.path = path == std::string::npos ? "/" : url.substr(path);
  const auto client = rest_client::RestClient::Make(options);
  if (!client.ok()) return client.error().message;
  const auto answer = (*client)->Send(request, seconds(10));
  if (!answer.ok()) return answer.error().message;
  if (answer->status == 200) return "";
  return fmt::format("{} answered {}: {}", url, answer->status, answer->body);
}

// Right after an upgrade the Service may still lead to the pod that goes: a few tries tell more
// than one.
int Check(const std::string& url) {
  constexpr int kTries = 5;
  std::string why = WhyNotReady(url);
  for (int tries = 1; !why.empty() && tries < kTries; ++tries) {
    std::this_thread::sleep_for(seconds(2));
    why = WhyNotReady(url);
  }
  if (why.empty()) return 0;
  while (!why.empty() && why.back() == '\n') why.pop_back();
  fmt::print(stderr, "{}\n", why);
  return 1;
}

int Run(const ProcessOptions& options) {
  const auto clock = std::make_shared<SystemClock>();
  auto config = kube::LoadConfig({options.kubeconfig, ""}, kube::SystemEnvironment(), clock);
  if (!config.ok()) {
    spdlog::error("{}", config.error().message);
    return 2;
  }
  const size_t scheme = config->server.find("://");
  Metrics metrics(scheme == std::string::npos ? config->server : config->server.substr(scheme + 3),
                  options.workers);
  kube::ClientOptions client_options;
  client_options.user_agent = fmt::format("parallelrun-operator/{}", kVersion);
  client_options.on_request = [&metrics](const kube::RequestDone& done) {
    metrics.Requested(done);
  };
  const auto client = kube::Client::Make(std::move(*config), std::move(client_options));
  if (!client.ok()) {
    spdlog::error("{}", client.error().message);
    return 2;
  }
  return Operator(options, **client, metrics, clock).Run();
}

int Main(int argc, char** argv) {
  const auto environment = [](const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? std::string() : std::string(value);
  };
  const ParsedOptions parsed = ParseOptions(std::vector<std::string>(argv + 1, argv + argc),
                                            {environment("POD_NAMESPACE"), environment("POD_UID")});
  if (parsed.exit) {
    fmt::print(parsed.exit_code == 0 ? stdout : stderr, "{}", parsed.text);
    return parsed.exit_code;
  }
  // An arena keeps what its threads once needed, and there are as many threads here as there are
  // jobs that start.
  mallopt(M_ARENA_MAX, 2);
  rest_client::InitRestThread();
  if (!parsed.check_url.empty()) return Check(parsed.check_url);
  SetUpLogging(parsed.options.log_format, parsed.options.log_level);
  return Run(parsed.options);
}

}  // namespace
}  // namespace parallelrun::operators

int main(int argc, char** argv) { return parallelrun::operators::Main(argc, argv); }
