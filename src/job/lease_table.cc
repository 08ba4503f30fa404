#include "job/lease_table.h"

#include <algorithm>
#include <utility>

#include "base/mutation.h"

namespace parallelrun {

LeaseTable::LeaseTable(const JobState& state, uint32_t epoch, Duration ttl)
    : state_(state), epoch_(epoch), ttl_(ttl) {
  for (const auto& [id, fence] : state.started()) {
    if (!state.settled(id)) withheld_.insert(id);
  }
  for (const auto& [id, piece] : state.pieces()) {
    if (Free(id)) Return(id);
  }
  for (BatchId id = 0; id < state.batches().size(); ++id) Reconsider(id);
}

bool LeaseTable::Open(BatchId id) const {
  return PARALLELRUN_MUTATED(kExpiryWhileCommitting) || !state_.settled(id);
}

void LeaseTable::AllowPieces(BatchId split) {
  Return(FirstPiece(split));
  Return(SecondPiece(split));
}

void LeaseTable::EndWithholding() {
  for (const BatchId id : std::exchange(withheld_, {})) {
    if (Free(id)) Return(id);
  }
}

void LeaseTable::HoldBack(BatchId id) {
  suspects_.Remove(id);
  ++held_back_[id];
}

void LeaseTable::LetGo(BatchId id) {
  const auto found = held_back_.find(id);
  if (found == held_back_.end() || --found->second > 0) return;
  held_back_.erase(found);
  if (Known(id) && Free(id)) Return(id);
}

void LeaseTable::Return(BatchId id) {
  if (Suspected(id)) {
    suspects_.Add({id, Company(id), state_.batch(id).losses});
  } else {
    returned_.push(id);
  }
}

void LeaseTable::Reconsider(BatchId id) {
  if (Suspected(id) && Free(id)) Return(id);
}

uint32_t LeaseTable::CompanyOn(uint32_t node) const {
  const auto found = suspects_on_.find(node);
  if (found == suspects_on_.end() || PARALLELRUN_MUTATED(kSuspectInCompany)) {
    return JobState::kAnyCompany;
  }
  return *found->second.begin();
}

uint64_t LeaseTable::Available(uint32_t node) const {
  const size_t held = HeldCount(node);
  const uint64_t company =
      suspects_.empty() ? 0 : std::min(suspects_.First().company, CompanyOn(node));
  const uint64_t of_suspects =
      company > held ? std::min<uint64_t>(suspects_.size(), company - held) : 0;
  if (HoldsSuspect(node)) return of_suspects;
  const uint64_t open = pending();
  const auto held_back = std::count_if(held_back_.begin(), held_back_.end(), [this](const auto& h) {
    return Known(h.first) && Open(h.first) && !leases_.contains(h.first);
  });
  const uint64_t apart = suspects_.size() + withheld_.size() + static_cast<uint64_t>(held_back);
  if (open > apart) return open - apart;
  return held == 0 ? of_suspects : 0;
}

std::optional<BatchId> LeaseTable::NextFree() {
  while (!returned_.empty()) {
    const BatchId id = returned_.top();
    returned_.pop();
    // An id may have been returned twice, or adopted since.
    if (Free(id) && !Suspected(id)) return id;
  }
  while (next_ < allowed_) {
    const BatchId id = next_++;
    if (Free(id) && !Suspected(id)) return id;
  }
  return std::nullopt;
}

std::optional<BatchId> LeaseTable::NextSuspect(uint32_t node) {
  if (suspects_.empty()) return std::nullopt;
  const Suspect next = suspects_.First();
  const size_t held = HeldCount(node);
  const bool fits = HoldsSuspect(node) ? held < std::min(next.company, CompanyOn(node)) : held == 0;
  if (!fits && !PARALLELRUN_MUTATED(kSuspectInCompany)) return std::nullopt;
  suspects_.Remove(next.id);
  return next.id;
}

Lease& LeaseTable::Add(Leases& to, BatchId id, uint32_t node, const Incarnation& incarnation,
                       Instant now, uint64_t request) {
  Lease& lease = to[id];
  lease = {node, incarnation, {epoch_, ++last_fence_}, now + ttl_};
  lease.request = request;
  lease.company = Company(id);
  if (lease.company != JobState::kAnyCompany) suspects_on_[node].insert(lease.company);
  ++held_[node];
  if (&to == &leases_ && IsPiece(id)) ++live_pieces_;
  return lease;
}

void LeaseTable::Remove(Leases& from, Leases::iterator lease) {
  const BatchId id = lease->first;
  const uint32_t node = lease->second.node;
  --held_[node];
  if (const uint32_t company = lease->second.company; company != JobState::kAnyCompany) {
    auto& companies = suspects_on_.at(node);
    companies.erase(companies.find(company));
    if (companies.empty()) suspects_on_.erase(node);
  }
  if (&from == &leases_ && IsPiece(id)) --live_pieces_;
  from.erase(lease);
}

std::optional<LeaseName> LeaseTable::Grant(uint32_t node, const Incarnation& incarnation,
                                           Instant now, uint64_t request) {
  std::optional<BatchId> id = HoldsSuspect(node) ? std::nullopt : NextFree();
  if (!id) id = NextSuspect(node);
  if (!id) return std::nullopt;
  return LeaseName{*id, Add(leases_, *id, node, incarnation, now, request).fence};
}

std::optional<LeaseName> LeaseTable::GrantSecond(uint32_t node, const Incarnation& incarnation,
                                                 Duration slow, uint32_t max_try, Instant now,
                                                 uint64_t request) {
  if (HoldsSuspect(node)) return std::nullopt;
  std::optional<BatchId> slowest;
  Instant since = now - slow;
  for (const auto& [id, lease] : leases_) {
    if (!lease.started || lease.started_at >= since || lease.node == node) continue;
    if (IsPiece(id) || state_.batch(id).losses > 0 || Suspected(id)) continue;
    if (seconds_.contains(id)) continue;
    const bool may_fail_both = state_.batch(id).failed_attempts + 1U < max_try;
    if (!may_fail_both && !PARALLELRUN_MUTATED(kSpeculationIgnoresTries)) continue;
    slowest = id;
    since = lease.started_at;
  }
  if (!slowest) return std::nullopt;
  return LeaseName{*slowest, Add(seconds_, *slowest, node, incarnation, now, request).fence};
}

std::optional<Fence> LeaseTable::Adopt(uint32_t node, const Incarnation& incarnation, BatchId id,
                                       bool started, Instant now, uint64_t request) {
  if (!Known(id) || state_.settled(id)) return std::nullopt;
  const auto found = leases_.find(id);
  // The same node's, from before it registered again: it still holds it.
  const bool own = found != leases_.end() && found->second.node == node &&
                   found->second.incarnation != incarnation;
  if (found != leases_.end() && !own) return std::nullopt;
  const size_t others = HeldCount(node) - (own ? 1U : 0U);
  if (others >= std::min(Company(id), CompanyOn(node))) return std::nullopt;
  if (own) Remove(leases_, found);
  suspects_.Remove(id);
  withheld_.erase(id);
  Lease& lease = Add(leases_, id, node, incarnation, now, request);
  lease.started = started;
  lease.started_at = now;
  return lease.fence;
}

const Lease* LeaseTable::Find(const Incarnation& incarnation, const LeaseName& name) const {
  for (const Leases* leases : {&leases_, &seconds_}) {
    const auto found = leases->find(name.id);
    if (found == leases->end()) continue;
    const Lease& lease = found->second;
    if (PARALLELRUN_MUTATED(kNoFenceCheck)) return &lease;
    if (lease.fence == name.fence && lease.incarnation == incarnation) return &lease;
  }
  return nullptr;
}

bool LeaseTable::Renew(const Incarnation& incarnation, const HeldLease& held, Instant now) {
  for (Leases* leases : {&leases_, &seconds_}) {
    const auto found = leases->find(held.id);
    if (found == leases->end()) continue;
    Lease& lease = found->second;
    if (lease.fence != held.fence || lease.incarnation != incarnation) continue;
    lease.deadline = now + ttl_;
    if (held.started && !lease.started) lease.started_at = now;
    lease.started = lease.started || held.started;
    return true;
  }
  return false;
}

bool LeaseTable::Holds(const Incarnation& incarnation, BatchId id, const Fence& fence) const {
  return Find(incarnation, {id, fence}) != nullptr;
}

void LeaseTable::Release(const LeaseName& name) {
  const auto second = seconds_.find(name.id);
  if (second != seconds_.end() && second->second.fence == name.fence) {
    return Remove(seconds_, second);
  }
  const auto found = leases_.find(name.id);
  if (found == leases_.end() || found->second.fence != name.fence) return;
  Remove(leases_, found);
  if (second != seconds_.end()) {
    // The second lease is the only one now.
    leases_[name.id] = second->second;
    if (IsPiece(name.id)) ++live_pieces_;
    seconds_.erase(second);
  } else if (Free(name.id)) {
    Return(name.id);
  }
}

bool LeaseTable::LiveBeside(const LeaseName& name) const {
  for (const Leases* leases : {&leases_, &seconds_}) {
    const auto found = leases->find(name.id);
    if (found != leases->end() && found->second.fence != name.fence) return true;
  }
  return false;
}

void LeaseTable::ReleaseAll(BatchId id) {
  suspects_.Remove(id);
  withheld_.erase(id);
  held_back_.erase(id);
  if (const auto second = seconds_.find(id); second != seconds_.end()) Remove(seconds_, second);
  const auto found = leases_.find(id);
  if (found == leases_.end()) return;
  Remove(leases_, found);
  if (Open(id)) Return(id);
}

template <typename Visit>
void LeaseTable::ForEach(Visit visit) {
  for (Leases* leases : {&leases_, &seconds_}) {
    for (auto& [id, lease] : *leases) visit(id, lease);
  }
}

std::vector<LeaseTable::Held> LeaseTable::Expire(Instant now) {
  std::vector<Held> gone;
  ForEach([&](BatchId id, const Lease& lease) {
    if (lease.deadline <= now) gone.push_back({id, lease});
  });
  for (const Held& held : gone) Release({held.id, held.lease.fence});
  return gone;
}

void LeaseTable::Shorten(uint32_t node, Instant now, Duration grace) {
  ForEach([&](BatchId, Lease& lease) {
    if (lease.node == node) lease.deadline = std::min(lease.deadline, now + grace);
  });
}

void LeaseTable::Extend(Duration gap) {
  ForEach([gap](BatchId, Lease& lease) { lease.deadline += gap; });
}

std::vector<LeaseTable::Held> LeaseTable::HeldBy(uint32_t node) const {
  std::vector<Held> held;
  for (const Leases* leases : {&leases_, &seconds_}) {
    for (const auto& [id, lease] : *leases) {
      if (lease.node == node) held.push_back({id, lease});
    }
  }
  return held;
}

size_t LeaseTable::HeldCount(uint32_t node) const {
  const auto found = held_.find(node);
  return found == held_.end() ? 0 : found->second;
}

uint64_t LeaseTable::pending() const {
  const JobCounts& counts = state_.counts();
  const uint64_t open = counts.planned - counts.succeeded - counts.failed - counts.split +
                        counts.pieces_open - leases_.size();
  const uint64_t not_allowed = counts.planned - std::min<uint64_t>(allowed_, counts.planned);
  return open - not_allowed;
}

std::optional<Instant> LeaseTable::NextDeadline() const {
  std::optional<Instant> next;
  for (const Leases* leases : {&leases_, &seconds_}) {
    for (const auto& [id, lease] : *leases) {
      if (!next || lease.deadline < *next) next = lease.deadline;
    }
  }
  return next;
}

}  // namespace parallelrun
