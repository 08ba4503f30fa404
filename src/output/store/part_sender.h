// Sends an output's bytes as the parts of one upload, several at once. Memory: one part more than
// are sent at once. For one thread at a time; it has threads of its own.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/thread.h"
#include "store/write_store.h"

namespace parallelrun::output {

struct PartPlan {
  uint64_t bytes = 0;  // of each part but the last
  size_t at_once = 1;
};

// For an output of about `total` bytes: parts as small as is allowed and sensible, and few enough.
// As many at once as 64 MiB hold, four at most.
PartPlan PlanParts(uint64_t total, const store::WriteStore::Parts& parts);

class PartSender {
 public:
  // `upload` must outlive this.
  PartSender(store::Upload& upload, const PartPlan& plan, uint32_t most_parts);
  // Waits for the parts that are being sent.
  ~PartSender();
  PartSender(const PartSender&) = delete;
  PartSender& operator=(const PartSender&) = delete;

  // Waits while as many parts as may be are on their way. Errors are of any part before; then
  // nothing more is sent.
  Status Add(std::string_view bytes);
  // The rest, and waits for all. There is one part at least, be it empty.
  Status Finish();

 private:
  struct Part {
    uint32_t number = 0;
    std::string bytes;
  };

  Status Hand();
  void Send();
  void End();

  store::Upload& upload_;
  const PartPlan plan_;
  const uint32_t most_parts_;
  std::string gathered_;
  uint32_t number_ = 0;  // of the last part that was handed over

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::optional<Part> handed_;
  size_t sending_ = 0;
  bool ended_ = false;
  Status failed_;
  std::vector<Thread> threads_;
};

}  // namespace parallelrun::output
