// LeaseTable decides which node may run which mini-batch until when. Pure: no clock, no I/O; not
// thread-safe. Leases live in memory only; what became of a mini-batch is JobState's business.
// Invariant: a mini-batch has at most one live lease, and a settled one has none.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <vector>

#include "base/mutation.h"
#include "base/time.h"
#include "job/ids.h"
#include "job/job_state.h"
#include "job/node_messages.h"

namespace parallelrun {

struct Lease {
  uint32_t node = 0;
  Incarnation incarnation;
  Fence fence;
  Instant deadline;  // at this instant the lease is gone
  bool started = false;
};

class LeaseTable {
 public:
  // `state` must outlive the table. Fences are (epoch, 1), (epoch, 2), …
  LeaseTable(const JobState& state, uint32_t epoch, Duration ttl)
      : state_(state), epoch_(epoch), ttl_(ttl) {}

  // Mini-batches below `end` may be leased: their chunks are durable. Never shrinks.
  void AllowBelow(BatchId end) { allowed_ = std::max(allowed_, end); }

  // Leases the lowest pending mini-batch; nullopt when none is pending.
  std::optional<LeaseName> Grant(uint32_t node, const Incarnation& incarnation, Instant now);

  // A new fence for a mini-batch that `node` holds from an earlier epoch or incarnation; nullopt
  // when it is settled, not planned, or leased to another node.
  std::optional<Fence> Adopt(uint32_t node, const Incarnation& incarnation, BatchId id,
                             bool started, Instant now);

  // False when the lease is not live or not this incarnation's.
  bool Renew(const Incarnation& incarnation, const HeldLease& held, Instant now);
  bool Holds(const Incarnation& incarnation, BatchId id, const Fence& fence) const;

  // Ends a lease; the mini-batch is pending again unless it is settled.
  void Release(BatchId id);

  // Ends every lease whose deadline is at or before `now`; returns how many.
  size_t Expire(Instant now);
  // The node's connection broke: its leases end at `now + grace` unless renewed.
  void Shorten(uint32_t node, Instant now, Duration grace);
  // Gives every lease `gap` more: the coordinator itself was not running.
  void Extend(Duration gap);

  struct Held {
    BatchId id = 0;
    Lease lease;
  };
  std::vector<Held> HeldBy(uint32_t node) const;
  size_t HeldCount(uint32_t node) const;

  size_t live() const { return leases_.size(); }
  // Durable, not settled, not leased.
  uint64_t pending() const;
  // The earliest deadline; nullopt without leases.
  std::optional<Instant> NextDeadline() const;

 private:
  bool Open(BatchId id) const {
    return PARALLELRUN_MUTATED(kExpiryWhileCommitting) || !state_.settled(id);
  }
  bool Free(BatchId id) const { return Open(id) && !leases_.contains(id); }
  Fence Mint() { return {epoch_, ++last_fence_}; }

  const JobState& state_;
  uint32_t epoch_;
  Duration ttl_;
  uint64_t last_fence_ = 0;
  BatchId allowed_ = 0;
  BatchId next_ = 0;  // every free id below is in returned_
  std::priority_queue<BatchId, std::vector<BatchId>, std::greater<>> returned_;
  std::map<BatchId, Lease> leases_;
  std::map<uint32_t, size_t> held_;  // live leases by node
};

}  // namespace parallelrun
