#include "operator/health.h"

#include <signal.h>

#include <utility>
#include <variant>

namespace parallelrun::operators {
namespace {

constexpr char kPrometheusText[] = "text/plain; version=0.0.4; charset=utf-8";

HttpResponse Answer(const HealthSources& sources, const std::string& path, bool health,
                    bool metrics) {
  if (health && (path == "/healthz" || path == "/readyz")) {
    const std::string why = path == "/healthz" ? sources.healthz() : sources.readyz();
    return why.empty() ? TextResponse(200, "ok\n") : TextResponse(503, why + "\n");
  }
  if (metrics && path == "/metrics") {
    HttpResponse response;
    response.content_type = kPrometheusText;
    response.body = sources.metrics();
    return response;
  }
  return TextResponse(404, "there is nothing here\n");
}

Result<std::unique_ptr<HttpServer>> Listen(EventLoop& loop, const std::string& address,
                                           const HealthSources& sources, bool health,
                                           bool metrics) {
  const Result<HostPort> parsed = ParseHostPort(address);
  if (!parsed.ok()) return parsed.error();
  HttpServerOptions options;
  options.host = parsed->host;
  options.port = parsed->port;
  LimitPublicPort(options);
  return HttpServer::Start(
      loop, options,
      [](const HttpRequest& request) -> std::variant<size_t, HttpResponse> {
        if (request.method != "GET" && request.method != "HEAD") {
          return TextResponse(405, "only GET\n");
        }
        return size_t{0};
      },
      [sources, health, metrics](const std::shared_ptr<HttpExchange>& exchange) {
        exchange->Respond(Answer(sources, exchange->request().path, health, metrics));
      });
}

}  // namespace

Result<std::unique_ptr<HealthServers>> HealthServers::Start(const std::string& health_address,
                                                            const std::string& metrics_address,
                                                            const HealthSources& sources,
                                                            const std::function<void()>& stop) {
  std::unique_ptr<HealthServers> servers(new HealthServers);
  const bool together = health_address == metrics_address;
  if (health_address != "0") {
    auto server = Listen(servers->loop_, health_address, sources, true, together);
    if (!server.ok()) return server.error().With("--health-address");
    servers->health_ = std::move(*server);
  }
  if (metrics_address != "0" && !together) {
    auto server = Listen(servers->loop_, metrics_address, sources, false, true);
    if (!server.ok()) return server.error().With("--metrics-address");
    servers->metrics_ = std::move(*server);
  }
  for (const int signo : {SIGTERM, SIGINT}) servers->loop_.OnSignal(signo, stop);
  servers->thread_ = Thread("health", [loop = &servers->loop_] { loop->Run(); });
  return servers;
}

HealthServers::~HealthServers() {
  loop_.Stop();
  if (thread_.joinable()) thread_.join();
}

void HealthServers::After(Duration delay, std::function<void()> callback) {
  loop_.Post(
      [this, delay, run = std::move(callback)]() mutable { loop_.After(delay, std::move(run)); });
}

}  // namespace parallelrun::operators
