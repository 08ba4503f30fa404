// HttpCalls answers what agents, the operator and people ask over HTTP (docs/coordinator-api.md):
// it reads a call, says it to the Coordinator, and writes the answer. On the server's loop only.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/http/server.h"
#include "base/time.h"
#include "coordinator/coordinator.h"
#include "coordinator/log_tree/log_sink.h"

namespace parallelrun {

class HttpCalls {
 public:
  struct Options {
    uint64_t run_id = 0;
    uint32_t epoch = 0;
    CoordinatorLimits limits;
    std::string agent_job;  // JSON text: `job` of the answer to register
  };

  // All that is passed by reference must outlive it; `progress` makes the answer of /v1/progress.
  HttpCalls(Options options, Coordinator& coordinator, LogSink logs, const SystemClock& clock,
            std::function<std::string()> progress);

  void Handle(const std::shared_ptr<HttpExchange>& exchange);
  // /metrics and the probes, which need no token; false: it is none of them.
  bool HandlePublic(const std::shared_ptr<HttpExchange>& exchange);

  // The last call with a token; at first, when this was made.
  Instant heard_at() const { return heard_at_; }

 private:
  void HandleNode(const std::shared_ptr<HttpExchange>& exchange, uint32_t node,
                  const std::vector<std::string>& path);
  HttpResponse Register(uint32_t node, const std::string& body);
  HttpResponse Leave(uint32_t node, const std::string& body);
  void Exchange(const std::shared_ptr<HttpExchange>& exchange, uint32_t node);
  HttpResponse WriteLog(uint32_t node, const HttpRequest& request,
                        const std::vector<std::string>& path);
  HttpResponse Control(const std::string& body);
  Instant Now() const { return clock_.Now(); }

  const Options options_;
  Coordinator& coordinator_;
  LogSink logs_;
  const SystemClock& clock_;
  const std::function<std::string()> progress_;
  Instant heard_at_;
};

}  // namespace parallelrun
