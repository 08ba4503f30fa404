// Asks the coordinator of a local run how far it is, and tells it to drain, on a thread of its own.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/thread.h"
#include "rest/client.h"

namespace parallelrun {

class ProgressPoller {
 public:
  // On the poller's thread, about three times a second while the coordinator answers, `show` gets
  // the progress (docs/coordinator-api.md), or `wait` why there is none yet.
  ProgressPoller(std::unique_ptr<RestClient> client, std::function<void(nlohmann::json)> show,
                 std::function<void(std::string)> wait);
  ~ProgressPoller();  // neither runs afterwards

  // Until the coordinator has heard it.
  void Drain();

 private:
  void Run();

  const std::unique_ptr<RestClient> client_;
  const std::function<void(nlohmann::json)> show_;
  const std::function<void(std::string)> wait_;
  std::mutex mutex_;  // guards the two below
  bool stop_ = false;
  bool drain_ = false;
  std::condition_variable wake_;
  Thread thread_;
};

}  // namespace parallelrun
