// Serves /healthz, /readyz and /metrics over plain HTTP, on a thread and event loop of its own, so
// that they answer whatever the rest of the process does. The functions given run on that thread
// and must not block.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/event_loop.h"
#include "base/http/server.h"
#include "base/thread.h"
#include "operator/options.h"

namespace parallelrun::operators {

struct HealthSources {
  // "" when all is well; else why not, in a sentence (answered with 503).
  std::function<std::string()> healthz;
  std::function<std::string()> readyz;
  std::function<std::string()> metrics;  // Prometheus text
};

class HealthServers {
 public:
  // Addresses as in ProcessOptions; "0" for none. One address given twice serves everything.
  // kUnavailable or kInvalid when one cannot be listened on. With a signal handler for SIGTERM and
  // SIGINT, which calls `stop` on the servers' thread.
  static Result<std::unique_ptr<HealthServers>> Start(const std::string& health_address,
                                                      const std::string& metrics_address,
                                                      const HealthSources& sources,
                                                      const std::function<void()>& stop);
  ~HealthServers();

  uint16_t health_port() const { return health_ ? health_->port() : 0; }
  uint16_t metrics_port() const { return metrics_ ? metrics_->port() : 0; }
  // Runs `callback` on the servers' thread after `delay`.
  void After(Duration delay, std::function<void()> callback);

 private:
  HealthServers() = default;

  EventLoop loop_;
  std::unique_ptr<HttpServer> health_;
  std::unique_ptr<HttpServer> metrics_;
  Thread thread_;
};

}  // namespace parallelrun::operators
