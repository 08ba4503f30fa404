// Why nobody may get a mini-batch, although it is not settled and perhaps not leased: because of
// what was said before, or what somebody may be doing. A block falls by itself; several may be on
// one mini-batch at once, and it need not be planned. Pure; not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/time.h"
#include "job/ids.h"

namespace parallelrun::job {

class Blocks {
 public:
  // More than honest nodes cause with kElsewhere; about 30 MB.
  static constexpr size_t kMostElsewhere = 1 << 18;

  // Its last attempt failed, and the record of that is durable at `position` only: a retry that
  // the next epoch knows nothing of could run beside the one that it leases.
  void AddRetry(BatchId id, uint64_t position);
  // Somebody who does not know that his lease is gone may be in run() of it until then. False when
  // there are too many.
  bool AddElsewhere(BatchId id, WorkInstant until);
  // An earlier epoch recorded that run() had started: its node may hold it still.
  void AddWithheld(BatchId id);

  // Each gives the mini-batches that have no block any more.
  std::vector<BatchId> Durable(uint64_t position);
  std::vector<BatchId> TimePassed(WorkInstant now);
  // All that were withheld until now, whether another block is left on them or not.
  std::vector<BatchId> EndWithheld();

  // Its node was heard of.
  void DropWithheld(BatchId id);
  // Nobody will want it any more.
  void Drop(BatchId id);

  struct Reasons {
    bool retry = false;
    bool withheld = false;
    std::optional<WorkInstant> elsewhere;
    bool any() const { return retry || withheld || elsewhere; }
  };
  Reasons Of(BatchId id) const;
  bool Has(BatchId id) const { return blocked_.contains(id); }
  const std::set<BatchId>& withheld() const { return withheld_; }
  // In no order.
  std::vector<BatchId> Ids() const;

 private:
  struct Block {
    uint64_t retry = 0;  // position; 0: none
    bool withheld = false;
    std::optional<WorkInstant> elsewhere;
    bool any() const { return retry != 0 || withheld || elsewhere; }
  };
  // True when that was the last one of it.
  bool EraseIfNone(BatchId id);

  std::unordered_map<BatchId, Block> blocked_;
  std::deque<std::pair<uint64_t, BatchId>> retries_;  // by position
  std::set<std::pair<WorkInstant, BatchId>> elsewhere_;
  std::set<BatchId> withheld_;
};

}  // namespace parallelrun::job
