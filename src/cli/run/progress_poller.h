// Asks the coordinator of a local run how far it is, and tells it to drain, on a thread of its own.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/thread.h"
#include "cli/failures_table.h"
#include "rest_client/client.h"

namespace parallelrun::cli {

class ProgressPoller {
 public:
  // Called on the poller's thread, about three times a second while the coordinator answers.
  struct Hears {
    std::function<void(nlohmann::json)> progress;  // docs/coordinator-api.md
    std::function<void(std::string)> wait;         // why there is none yet
    std::function<void(FailedLine)> failure;       // each attempt that has failed since
  };
  ProgressPoller(std::unique_ptr<rest_client::RestClient> client, Hears hears);
  ~ProgressPoller();  // neither runs afterwards

  // Until the coordinator has heard it.
  void Drain();

 private:
  void Run();
  void AskForFailures(const nlohmann::json& progress);

  const std::unique_ptr<rest_client::RestClient> client_;
  const Hears hears_;
  uint64_t epoch_ = 0;         // the poller's own: which coordinator numbered the next
  uint64_t last_failure_ = 0;  // that was heard
  std::mutex mutex_;           // guards the two below
  bool stop_ = false;
  bool drain_ = false;
  std::condition_variable wake_;
  Thread thread_;
};

}  // namespace parallelrun::cli
