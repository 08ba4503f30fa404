// Closing: the time between the last result and the verdict, in which the processes run shutdown().
// It is bounded, whoever is heard of or not. Times are working time. Pure; not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "job/ids.h"
#include "job/node_messages.h"
#include "job/shutdowns.h"

namespace parallelrun::coordinator {

class Closing {
 public:
  // `timeout`: what a shutdown() may take.
  explicit Closing(Duration timeout) : timeout_(timeout) {}

  // `position`: up to there the ledger must be durable before anybody is told.
  void Begin(WorkInstant worked, uint64_t position);
  // True once: when that is so.
  bool Durable(uint64_t durable);
  // Nodes are told to close.
  bool tells() const { return tells_; }
  // Who was not heard of by now will not be.
  bool Overdue(WorkInstant worked) const;

  // --- whether a node was told, in the incarnation that is in force
  // An older one may be answered last.
  void Told(uint32_t node, const job::Incarnation& incarnation);
  bool WasTold(uint32_t node, const job::Incarnation& incarnation) const;

 private:
  const Duration timeout_;
  std::optional<WorkInstant> began_;
  uint64_t position_ = 0;
  bool tells_ = false;
  std::map<uint32_t, job::Incarnation> told_;
};

// What one of the events kOwes and kClosed to kCloseLost says.
job::ProcessEnd EndOf(job::ProcessEvent::Kind kind);

// Those whose number is not among `numbers`, which is the text of an event kOwing.
std::vector<job::ProcessId> NotNamed(std::vector<job::ProcessId> processes,
                                     std::string_view numbers);

}  // namespace parallelrun::coordinator
