#include "job/availability.h"

#include <cassert>

#include <spdlog/fmt/fmt.h>

namespace parallelrun::job {
namespace {

// An earlier epoch may have granted so much later than its successor began (it looks for one a
// tenth of a lease before it answers at the latest), and clocks run at different rates: a new
// epoch waits a lease and a tenth.
constexpr int kWaitMore = 10;

}  // namespace

Availability::Availability(const JobState& state, uint32_t epoch, const LeaseRules& rules,
                           bool first, WorkInstant now)
    : state_(state),
      epoch_(epoch),
      rules_(rules),
      durable_(state.counts().planned),
      withhold_until_(now + rules.lease + rules.lease / kWaitMore),
      awaits_nodes_(!rules.speculation && !first) {
  for (const auto& [id, fence] : state.started()) {
    if (!state.settled(id)) blocks_.AddWithheld(id);
  }
  for (BatchId id = 0; id < durable_; ++id) Back(id);
  for (const auto& [id, piece] : state.pieces()) Back(id);
}

Availability::Value Availability::Of(BatchId id) const {
  Value value;
  value.blocks = blocks_.Of(id);
  const auto [first, second] = leases_.Of(id);
  if (first != nullptr) {
    value.lease = first->lease;
    value.state = second == nullptr ? State::kLeased : State::kTwice;
  } else if (!state_.known(id)) {
    value.state = State::kUnknown;
  } else if (state_.settled(id)) {
    const bool split = state_.batch(id).state == MiniBatch::State::kSplit;
    value.state = split ? State::kSplit : State::kSettled;
  } else if (!Known(id)) {
    value.state = State::kPlanned;
  } else if (value.blocks.any()) {
    value.state = State::kBlocked;
  } else {
    value.state = apart_.Contains(id) ? State::kApart : State::kReady;
  }
  return value;
}

// --- what the ledger says

void Availability::Durable(uint64_t position) {
  for (; !chunks_.empty() && chunks_.front().first <= position; chunks_.pop_front()) {
    for (; durable_ < chunks_.front().second;) Back(durable_++);
  }
  Free(blocks_.Durable(position));
}

void Availability::Settle(BatchId id) {
  // The node of the other one may have room for a suspect now.
  freed_ = freed_ || leases_.Of(id)[1] != nullptr;
  while (Live* const live = leases_.Of(id)[0]) leases_.Remove(*live);
  blocks_.Drop(id);
  Take(id);
}

void Availability::Split(BatchId id, uint64_t position) {
  Settle(id);
  for (const BatchId piece : {FirstPiece(id), SecondPiece(id)}) {
    if (!rules_.speculation) blocks_.AddRetry(piece, position);
    Back(piece);
  }
}

void Availability::Retry(const LeaseName& name, uint64_t position) {
  End(name);
  if (rules_.speculation) return;
  blocks_.AddRetry(name.id, position);
  Take(name.id);
}

void Availability::Reconsider(BatchId id) {
  assert(Known(id));  // it was leased once
  if (const auto [first, second] = leases_.Of(id); first != nullptr) return AllowSecond(id);
  if (!Suspected(id)) return;
  Take(id);
  Back(id);
}

// --- time

std::vector<Held> Availability::Expire(WorkInstant now) {
  std::vector<Held> gone;
  for (Live* live = leases_.Earliest(); live != nullptr && live->lease.deadline <= now;
       live = leases_.Earliest()) {
    gone.push_back({live->id, live->lease});
    EndLive(*live);
  }
  return gone;
}

std::vector<BatchId> Availability::TimePassed(WorkInstant now) {
  Free(blocks_.TimePassed(now));
  if (now < withhold_until_) return {};
  OpenGate();
  const std::vector<BatchId> withheld = blocks_.EndWithheld();
  Free(withheld);
  return withheld;
}

// --- what may be in run() somewhere

void Availability::BlockUntil(BatchId id, WorkInstant until) {
  if (rules_.speculation || (state_.known(id) && state_.settled(id))) return;
  if (blocks_.AddElsewhere(id, until)) Take(id);
}

void Availability::BlockRefused(BatchId id, WorkInstant now) {
  if (now < withhold_until_) BlockUntil(id, withhold_until_);
}

void Availability::OpenGate() {
  freed_ = freed_ || awaits_nodes_;
  awaits_nodes_ = false;
}

// --- leases

uint32_t Availability::Company(BatchId id) const {
  return state_.batch(id).losses >= kSuspectLosses ? 1 : state_.companies().Of(id);
}

uint32_t Availability::CompanyOn(uint32_t node) const { return leases_.CompanyOn(node); }

uint64_t Availability::Available(uint32_t node) const {
  const size_t held = HeldCount(node);
  const uint64_t company = apart_.empty() ? 0 : std::min(apart_.First().company, CompanyOn(node));
  const uint64_t of_suspects =
      company > held ? std::min<uint64_t>(apart_.size(), company - held) : 0;
  if (HoldsSuspect(node)) return of_suspects;
  if (ready_.size() > 0) return ready_.size();
  return held == 0 ? of_suspects : 0;
}

std::optional<BatchId> Availability::NextSuspect(uint32_t node) const {
  if (apart_.empty()) return std::nullopt;
  const Suspect next = apart_.First();
  const size_t held = HeldCount(node);
  const bool fits = HoldsSuspect(node) ? held < std::min(next.company, CompanyOn(node)) : held == 0;
  if (!fits) return std::nullopt;
  return next.id;
}

Availability::Live& Availability::Lend(BatchId id, const Asker& asker, WorkInstant now) {
  Take(id);
  Lease lease{asker.node, asker.incarnation, {epoch_, ++last_fence_}, now + rules_.lease};
  lease.request = asker.request;
  lease.company = Company(id);
  return leases_.Add(id, lease);
}

std::optional<LeaseName> Availability::Grant(const Asker& asker, WorkInstant now) {
  std::optional<BatchId> id = HoldsSuspect(asker.node) ? std::nullopt : ready_.First();
  if (id) ready_.Granted(*id);
  if (!id) id = NextSuspect(asker.node);
  if (!id) return std::nullopt;
  return LeaseName{*id, Lend(*id, asker, now).lease.fence};
}

bool Availability::HasSlow(Duration slow, WorkInstant now) const {
  const std::optional<WorkInstant> started = leases_.LongestWithoutSecond();
  return started && *started < now - slow;
}

std::optional<Held> Availability::Slowest() const {
  const Live* const slowest = leases_.Slowest();
  if (slowest == nullptr) return std::nullopt;
  return Held{slowest->id, slowest->lease};
}

std::optional<LeaseName> Availability::GrantSecond(const Asker& asker, Duration slow,
                                                   WorkInstant now) {
  if (HoldsSuspect(asker.node)) return std::nullopt;
  const Live* const slowest = leases_.LongestElsewhere(asker.node);
  if (slowest == nullptr || slowest->lease.started_at >= now - slow) return std::nullopt;
  const BatchId id = slowest->id;
  const Fence fence = Lend(id, asker, now).lease.fence;
  AllowSecond(id);
  return LeaseName{id, fence};
}

// It may be given to a second node while it has one lease, has started, and nothing is held against
// it, unless both could fail: that might be a try too many.
void Availability::AllowSecond(BatchId id) {
  if (!rules_.speculation) return;
  const auto [first, second] = leases_.Of(id);
  const bool tries = state_.batch(id).failed_attempts + 1U < rules_.max_try;
  leases_.AllowSecond(*first, first->lease.started && second == nullptr && tries && !IsPiece(id) &&
                                  state_.batch(id).losses == 0 && !Suspected(id));
}

std::optional<Fence> Availability::Adopt(const Asker& asker, BatchId id, bool started,
                                         WorkInstant now) {
  if (!Known(id) || state_.settled(id)) return std::nullopt;
  Live* const live = leases_.Of(id)[0];
  // The same node's, from before it registered again: it still holds it.
  const bool own = live != nullptr && live->lease.node == asker.node &&
                   live->lease.incarnation != asker.incarnation;
  if (live != nullptr && !own) return std::nullopt;
  const size_t others = HeldCount(asker.node) - (own ? 1U : 0U);
  if (others >= std::min(Company(id), CompanyOn(asker.node))) return std::nullopt;
  if (own) leases_.Remove(*live);
  blocks_.DropWithheld(id);
  Lease& lease = Lend(id, asker, now).lease;
  lease.started = started;
  lease.started_at = now;
  AllowSecond(id);
  return lease.fence;
}

Availability::Live* Availability::FindLive(const Incarnation& incarnation,
                                           const LeaseName& name) const {
  Live* const live = leases_.Find(name);
  return live != nullptr && live->lease.incarnation == incarnation ? live : nullptr;
}

bool Availability::Has(const Incarnation& incarnation, const LeaseName& name) const {
  return FindLive(incarnation, name) != nullptr;
}

bool Availability::Renew(const Incarnation& incarnation, const HeldLease& held, WorkInstant now) {
  Live* const live = leases_.Find({held.id, held.fence});
  if (live == nullptr || live->lease.incarnation != incarnation) return false;
  leases_.Renew(*live, now + rules_.lease);
  if (!held.started || live->lease.started) return true;
  live->lease.started = true;
  live->lease.started_at = now;
  AllowSecond(held.id);
  return true;
}

bool Availability::LiveBeside(const LeaseName& name) const {
  for (const Live* live : leases_.Of(name.id)) {
    if (live != nullptr && live->lease.fence != name.fence) return true;
  }
  return false;
}

void Availability::End(const LeaseName& name) {
  if (Live* const live = leases_.Find(name)) EndLive(*live);
}

void Availability::EndLive(Live& live) {
  const BatchId id = live.id;
  leases_.Remove(live);
  freed_ = true;  // if only because its node has room for a suspect now
  if (leases_.Has(id)) {
    AllowSecond(id);
  } else {
    Back(id);
  }
}

// --- indexes

void Availability::Back(BatchId id) {
  if (blocks_.Has(id) || leases_.Has(id)) return;
  if (state_.settled(id)) return;
  freed_ = true;
  if (Suspected(id)) {
    apart_.Add({id, Company(id), state_.batch(id).losses});
  } else {
    ready_.Add(id);
  }
}

void Availability::Take(BatchId id) {
  apart_.Remove(id);
  ready_.Remove(id);
}

void Availability::Free(const std::vector<BatchId>& ids) {
  for (const BatchId id : ids) {
    if (Known(id)) Back(id);
  }
}

// --- counts

uint64_t Availability::pending() const {
  const JobCounts& counts = state_.counts();
  const uint64_t open = counts.planned - counts.succeeded - counts.failed - counts.split +
                        counts.pieces_open - leases_.batches();
  return open - (counts.planned - durable_);
}

std::string Availability::Check() const {
  if (std::string wrong = leases_.Check(); !wrong.empty()) return wrong;
  uint64_t counted_ready = 0;
  uint64_t counted_apart = 0;
  uint64_t counted_pending = 0;
  std::string wrong;
  const auto check = [&](BatchId id) {
    const State state = Of(id).state;
    const bool ready = ready_.Contains(id);
    const bool apart = apart_.Contains(id);
    counted_ready += ready ? 1 : 0;
    counted_apart += apart ? 1 : 0;
    const bool free = state == State::kReady || state == State::kApart;
    counted_pending += free || state == State::kBlocked ? 1 : 0;
    const bool right = ready == (state == State::kReady) && apart == (state == State::kApart) &&
                       (!free || apart == Suspected(id)) &&
                       !(leases_.Has(id) && state_.settled(id));
    if (!right) {
      wrong = fmt::format("{} is in state {}, {}ready, {}apart", MiniBatchText(id),
                          static_cast<int>(state), ready ? "" : "not ", apart ? "" : "not ");
    }
  };
  for (BatchId id = 0; id < state_.counts().planned; ++id) check(id);
  for (const auto& [id, piece] : state_.pieces()) check(id);
  if (!wrong.empty()) return wrong;
  if (counted_ready != ready_.size() || counted_apart != apart_.size() ||
      counted_pending != pending()) {
    return fmt::format("{} ready, {} apart and {} pending are called {}, {} and {}", counted_ready,
                       counted_apart, counted_pending, ready_.size(), apart_.size(), pending());
  }
  for (const BatchId id : blocks_.Ids()) {
    if (state_.known(id) && state_.settled(id)) return "a settled mini-batch is blocked";
  }
  return "";
}

}  // namespace parallelrun::job
