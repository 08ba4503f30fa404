// HttpCalls answers what agents, the operator and people ask over HTTP (docs/coordinator-api.md):
// it reads a call, says it to the Coordinator, and writes the answer. On the server's loop only.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "base/http/server.h"
#include "base/time.h"
#include "coordinator/coordinator.h"
#include "coordinator/log_tree/log_writer.h"
#include "coordinator/object_urls.h"
#include "coordinator/side_uploads.h"
#include "coordinator/stray_names.h"

namespace parallelrun::coordinator {

class HttpCalls {
 public:
  struct Options {
    uint64_t run_id = 0;
    uint32_t epoch = 0;
    CoordinatorLimits limits;
    std::string agent_job;       // JSON text: `job` of the answer to register
    ObjectUrls* urls = nullptr;  // null: nodes read objects by keys of their own
    // Null: side files of the job do not go to a store.
    SideUploads* side_uploads = nullptr;
  };

  // All that is passed by reference must outlive it; `progress` makes the answer of /v1/progress,
  // `failures` that of /v1/failures, behind the failed attempt of that number.
  HttpCalls(Options options, Coordinator& coordinator, LogWriter& logs, EventLoop& loop,
            const SystemClock& clock, std::function<std::string()> progress,
            std::function<std::string(uint64_t after)> failures);

  // The refusal of a call that there is no room for now, before its body is read. For the gate.
  std::optional<HttpResponse> RefuseEarly(const HttpRequest& request) const;

  void Handle(const std::shared_ptr<HttpExchange>& exchange);
  // /metrics and the probes, which need no token; false: it is none of them.
  bool HandlePublic(const std::shared_ptr<HttpExchange>& exchange);

  // The last call with a token; at first, when this was made.
  Instant heard_at() const { return heard_at_; }
  // What the nodes that have left took with them.
  const StrayNames& stray() const { return stray_; }

 private:
  void HandleNode(const std::shared_ptr<HttpExchange>& exchange, uint32_t node,
                  const std::vector<std::string>& path);
  HttpResponse Register(uint32_t node, const std::string& body);
  HttpResponse Leave(uint32_t node, const std::string& body);
  void Exchange(const std::shared_ptr<HttpExchange>& exchange, uint32_t node);
  void SideUrls(const std::shared_ptr<HttpExchange>& exchange);
  void SideFiles(const std::shared_ptr<HttpExchange>& exchange, uint32_t node);
  void WriteLog(const std::shared_ptr<HttpExchange>& exchange, uint32_t node,
                const std::vector<std::string>& path);
  HttpResponse Control(const std::string& body);
  Instant Now() const { return clock_.Now(); }

  const Options options_;
  Coordinator& coordinator_;
  LogWriter& logs_;
  EventLoop& loop_;
  const SystemClock& clock_;
  const std::function<std::string()> progress_;
  const std::function<std::string(uint64_t after)> failures_;
  Instant heard_at_;
  StrayNames stray_;
  // Uploads that are being written: only this thread may let go of an exchange.
  std::map<uint64_t, std::shared_ptr<HttpExchange>> uploads_;
  uint64_t last_upload_ = 0;
};

}  // namespace parallelrun::coordinator
