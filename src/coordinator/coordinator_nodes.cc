// Nodes come and go, and what becomes of what they hold.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/escape.h"
#include "base/mutation.h"
#include "coordinator/coordinator.h"
#include "coordinator/item_names.h"

namespace parallelrun {
namespace {

// Process names are unique within a node for ever: each incarnation gets a range of its own.
constexpr uint64_t kProcessNames = 1'000;
constexpr uint64_t kIncarnationsOfEpoch = 200;
constexpr size_t kMaxMessage = size_t{4} << 10;

}  // namespace

// --- nodes

NodeRegistration Coordinator::Register(uint32_t index, const std::string& agent, uint32_t processes,
                                       Instant now, uint64_t pod) {
  working_.Pass(now);
  switch (nodes_.BeforeIt(index, agent, pod)) {
    case Nodes::Before::kNone: break;
    case Nodes::Before::kMayLive: SetLeasesAside(index); break;
    case Nodes::Before::kDied: LoseLeases(index, nullptr, now); break;
  }
  const Node& node =
      nodes_.Register(index, agent, pod, processes, ledger_.epoch(), working_.At(now));
  waiters_.Release(index, now);
  AnswerWoken(now);
  const uint64_t range =
      (ledger_.epoch() - options_.first_epoch) * kIncarnationsOfEpoch + node.registrations - 1;
  return {node.incarnation, static_cast<uint32_t>(range * kProcessNames)};
}

// They are nobody's loss, and nobody else's for as long as its agent may believe that it has them.
void Coordinator::SetLeasesAside(uint32_t index) {
  for (const Held& held : availability_.HeldBy(index)) {
    availability_.HoldElsewhere(held.id, held.lease.deadline);
    EndLease({held.id, held.lease.fence});
  }
}

// Of those that are not settled: what expired was its agent's until it was heard of again.
std::vector<Held> Coordinator::HeldAtDeath(uint32_t index, Node& node) {
  std::vector<Held> held = availability_.HeldBy(index);
  for (const Held& one : std::exchange(node.expired, {})) {
    if (!state_.settled(one.id)) held.push_back(one);
  }
  return held;
}

// What an agent told last is old when run() takes milliseconds: any that it held may have ended it.
void Coordinator::NarrowDown(const std::vector<Held>& held) {
  if (held.size() < 2 || over() || PARALLELRUN_MUTATED(kHeldSetNotHalved)) return;
  CompanyRecord once{kHeldOnce, {}};
  CompanyRecord again{static_cast<uint32_t>(held.size() / 2), {}};
  for (const Held& one : held) {
    (state_.held_at_death(one.id) ? again : once).ids.push_back(one.id);
  }
  if (!once.ids.empty()) Record(once);
  if (!again.ids.empty()) Record(again);
}

void Coordinator::LoseLeases(uint32_t index, const PodEnd* end, Instant now) {
  const std::vector<Held> held = HeldAtDeath(index, *nodes_.Find(index));
  if (!held.empty())
    last_progress_ = working_.At(now);  // what is lost again and again comes to an end by that
  NarrowDown(held);
  const auto began = [](const Held& one) { return one.lease.started; };
  const auto begun = std::count_if(held.begin(), held.end(), began);
  // What was alone had begun: a script may end its node faster than the agent can tell.
  const bool alone = held.size() == 1;
  const bool memory = end != nullptr && end->reason == "OOMKilled" && (alone || begun == 1);
  for (const Held& one : held) {
    const LeaseName name{one.id, one.lease.fence};
    const bool counts = alone || began(one);
    if (!counts || over()) {
      EndLease(name);
      availability_.Reconsider(name.id);
    } else if (memory) {
      FailForMemory(name, *end, now);
    } else {
      Lose(index, name);
    }
  }
  Decide(now);
}

void Coordinator::Lose(uint32_t index, const LeaseName& name) {
  if (over()) return availability_.End(name);
  Record(LostRecord{name.id, name.fence});
  availability_.Reconsider(name.id);
  const uint16_t losses = state_.batch(name.id).losses;
  if (losses < options_.max_losses || availability_.LiveBeside(name))
    return availability_.End(name);
  const std::string items = ItemsOfMiniBatch(state_, plan_, name.id);
  const std::string message = fmt::format(
      "mini-batch {}{} ended its node: {} times a node died that ran it or held nothing else; look "
      "for what ends the whole node, such as memory, mend it, and try again what failed",
      MiniBatchText(name.id), items.empty() ? "" : " (" + items + ")", losses);
  // Without the lease's fence: nobody reported this, so that no later report is a repeat of it.
  FailedRecord failed;
  failed.id = name.id;
  failed.node = index;
  failed.cause = Cause::kProcessEnded;
  failed.end = AttemptEnd::kFinal;
  failed.kind = kLostTooOften;
  failed.message = Front(message, kMaxMessage);
  Fail(failed, name);
}

void Coordinator::EndLease(const LeaseName& name) {
  const auto started = state_.started().find(name.id);
  if (!over() && started != state_.started().end() && started->second == name.fence) {
    Record(StartedRecord{name.id, name.fence, false});
  }
  availability_.End(name);
}

void Coordinator::Leave(uint32_t index, const Incarnation& incarnation, Instant now) {
  working_.Pass(now);
  Node* const node = nodes_.Find(index);
  if (node == nullptr || node->incarnation != incarnation) return;
  Nodes::Depart(*node);
  node->expired.clear();
  for (const Held& held : availability_.HeldBy(index)) {
    EndLease({held.id, held.lease.fence});
  }
  LoseShutdowns(state_.shutdowns().OpenOf(index), "its node has left");
  waiters_.Release(index, now);
  if (phase_ == Phase::kClosing) Decide(now);
  AnswerWoken(now);
}

void Coordinator::LoseShutdowns(const std::vector<ProcessId>& processes, const std::string& why) {
  if (over()) return;
  for (const ProcessId& process : processes) {
    Record(ShutdownRecord{process.node, process.number, ProcessEnd::kLost,
                          why + " before its shutdown() had ended", ""});
  }
}

void Coordinator::ConnectionGone(uint64_t exchange, Instant now) {
  working_.Pass(now);
  const std::optional<uint32_t> node = waiters_.Gone(exchange);
  if (!node) return;  // it has its answer
  // Without speculation its agent may go on for as long as it was told.
  if (options_.speculation) availability_.Shorten(*node, working_.At(now), options_.broken_grace);
}

AttemptEnd Coordinator::EndOfAttempt(const LeaseName& name, Cause cause) const {
  const MiniBatch& batch = state_.batch(name.id);
  const bool splits = options_.isolate_failures && batch.items > 1 && HasPieces(name.id);
  // A piece of several items needs no second try: splitting it loses nothing. What does not fit the
  // types of the columns will not fit them then.
  const bool once = cause == Cause::kMisfit || (splits && IsPiece(name.id));
  uint32_t tries = once ? 1 : options_.run_max_try;
  if (PARALLELRUN_MUTATED(kRunMaxTryIgnored)) ++tries;
  if (batch.failed_attempts + 1U < tries || availability_.LiveBeside(name))
    return AttemptEnd::kAgain;
  return splits ? AttemptEnd::kSplit : AttemptEnd::kFinal;
}

uint64_t Coordinator::Fail(const FailedRecord& failed, const LeaseName& lease) {
  const uint64_t position = Record(failed).position;
  switch (failed.end) {
    case AttemptEnd::kAgain: availability_.Retry(lease, position); break;
    case AttemptEnd::kSplit: availability_.Split(failed.id, position); break;
    case AttemptEnd::kFinal: availability_.Settle(failed.id); break;
  }
  return position;
}

}  // namespace parallelrun
