#include "job/lease_table.h"

#include <algorithm>

namespace parallelrun {

std::optional<LeaseName> LeaseTable::Grant(uint32_t node, const Incarnation& incarnation,
                                           Instant now) {
  std::optional<BatchId> id;
  while (!returned_.empty() && !id) {
    const BatchId candidate = returned_.top();
    returned_.pop();
    // An id may have been returned twice, or adopted since.
    if (Free(candidate)) id = candidate;
  }
  while (!id && next_ < allowed_) {
    if (Free(next_)) id = next_;
    ++next_;
  }
  if (!id) return std::nullopt;
  const Fence fence = Mint();
  leases_[*id] = {node, incarnation, fence, now + ttl_, false};
  ++held_[node];
  return LeaseName{*id, fence};
}

std::optional<Fence> LeaseTable::Adopt(uint32_t node, const Incarnation& incarnation, BatchId id,
                                       bool started, Instant now) {
  if (id >= allowed_ || state_.settled(id)) return std::nullopt;
  const auto found = leases_.find(id);
  if (found != leases_.end()) {
    // The same node's, from before it registered again: it still holds it.
    if (found->second.node != node || found->second.incarnation == incarnation) return std::nullopt;
  } else {
    ++held_[node];
  }
  const Fence fence = Mint();
  leases_[id] = {node, incarnation, fence, now + ttl_, started};
  return fence;
}

bool LeaseTable::Renew(const Incarnation& incarnation, const HeldLease& held, Instant now) {
  const auto found = leases_.find(held.id);
  if (found == leases_.end()) return false;
  Lease& lease = found->second;
  if (lease.fence != held.fence || lease.incarnation != incarnation) return false;
  lease.deadline = now + ttl_;
  lease.started = lease.started || held.started;
  return true;
}

bool LeaseTable::Holds(const Incarnation& incarnation, BatchId id, const Fence& fence) const {
  const auto found = leases_.find(id);
  if (PARALLELRUN_MUTATED(kNoFenceCheck)) return found != leases_.end();
  return found != leases_.end() && found->second.fence == fence &&
         found->second.incarnation == incarnation;
}

void LeaseTable::Release(BatchId id) {
  const auto found = leases_.find(id);
  if (found == leases_.end()) return;
  --held_[found->second.node];
  leases_.erase(found);
  if (Open(id)) returned_.push(id);
}

size_t LeaseTable::Expire(Instant now) {
  std::vector<BatchId> gone;
  for (const auto& [id, lease] : leases_) {
    if (lease.deadline <= now) gone.push_back(id);
  }
  for (const BatchId id : gone) Release(id);
  return gone.size();
}

void LeaseTable::Shorten(uint32_t node, Instant now, Duration grace) {
  for (auto& [id, lease] : leases_) {
    if (lease.node == node) lease.deadline = std::min(lease.deadline, now + grace);
  }
}

void LeaseTable::Extend(Duration gap) {
  for (auto& [id, lease] : leases_) lease.deadline += gap;
}

std::vector<LeaseTable::Held> LeaseTable::HeldBy(uint32_t node) const {
  std::vector<Held> held;
  for (const auto& [id, lease] : leases_) {
    if (lease.node == node) held.push_back({id, lease});
  }
  return held;
}

size_t LeaseTable::HeldCount(uint32_t node) const {
  const auto found = held_.find(node);
  return found == held_.end() ? 0 : found->second;
}

uint64_t LeaseTable::pending() const {
  const JobCounts& counts = state_.counts();
  const uint64_t open = counts.planned - counts.succeeded - counts.failed - leases_.size();
  const uint64_t not_allowed = counts.planned - std::min<uint64_t>(allowed_, counts.planned);
  return open - not_allowed;
}

std::optional<Instant> LeaseTable::NextDeadline() const {
  std::optional<Instant> next;
  for (const auto& [id, lease] : leases_) {
    if (!next || lease.deadline < *next) next = lease.deadline;
  }
  return next;
}

}  // namespace parallelrun
