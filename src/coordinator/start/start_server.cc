#include "coordinator/start/start_server.h"

#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

#include <utility>

#include "coordinator/access.h"

namespace parallelrun::coordinator {
namespace {

constexpr Duration kWatch = seconds(1);

bool IsProbe(const HttpRequest& request) {
  return request.path == "/healthz" || request.path == "/readyz";
}

}  // namespace

StartServer::StartServer(Options options) : options_(std::move(options)) {
  Watch();
  loop_.After(options_.open_after, [this] { Open(); });
  thread_ = Thread("start", [this] { loop_.Run(); });
}

StartServer::~StartServer() {
  loop_.Stop();
  thread_.join();
}

void StartServer::Begin(std::string doing, std::string steps) {
  const std::lock_guard lock(mutex_);
  doing_ = std::move(doing);
  unit_ = std::move(steps);
  begun_ = ++steps_;  // to have begun is a step too
}

void StartServer::Step() { steps_.fetch_add(1, std::memory_order_relaxed); }

void StartServer::Watch() {
  if (const uint64_t steps = steps_; steps != seen_) {
    seen_ = steps;
    stepped_at_ = clock_.Now();
  }
  loop_.After(kWatch, [this] { Watch(); });
}

void StartServer::Open() {
  const auto open = [this](HttpServerOptions http, HttpServer::Gate gate) {
    if (http.listen_fd >= 0) http.listen_fd = fcntl(http.listen_fd, F_DUPFD_CLOEXEC, 0);
    Result<std::unique_ptr<HttpServer>> server =
        HttpServer::Start(loop_, std::move(http), std::move(gate),
                          [this](const std::shared_ptr<HttpExchange>& exchange) {
                            exchange->Respond(Answer(exchange->request()));
                          });
    if (server.ok()) return std::move(*server);
    spdlog::warn("while the coordinator starts nobody hears of it: {}", server.error().message);
    return std::unique_ptr<HttpServer>();
  };
  http_ = open(options_.http,
               [this](const HttpRequest& request) { return Admit(request, options_.key); });
  if (!options_.metrics_http) return;
  metrics_http_ =
      open(*options_.metrics_http,
           [](const HttpRequest&) -> std::variant<size_t, HttpResponse> { return size_t{0}; });
}

HttpResponse StartServer::Answer(const HttpRequest& request) {
  const Duration still = clock_.Now() - stepped_at_;
  const bool stalled = still > options_.stall_limit;
  std::string words;
  {
    const std::lock_guard lock(mutex_);
    words =
        fmt::format("the coordinator starts: it {}, {} {} so far", doing_, steps_ - begun_, unit_);
  }
  if (stalled)
    words += fmt::format(", the last one {} ago: does a volume hang?", HumanDuration(still));
  if (!IsProbe(request)) {
    // Nodes wait for one that is to come; a stalled one is as good as none.
    return stalled ? ErrorResponse(500, "Internal", words)
                   : ErrorResponse(503, "Unavailable", words);
  }
  const bool lives = request.path == "/healthz" && !stalled;
  return TextResponse(lives ? 200 : 503, (lives ? "ok: " : "") + words + "\n");
}

}  // namespace parallelrun::coordinator
