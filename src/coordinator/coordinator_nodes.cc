// What nodes say to the coordinator, and what becomes of what they hold.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include "base/mutation.h"
#include "coordinator/coordinator.h"

namespace parallelrun {
namespace {

// Process names are unique within a node for ever: each incarnation gets a range of its own.
constexpr uint64_t kProcessNames = 1'000;
constexpr uint64_t kIncarnationsOfEpoch = 200;
constexpr uint32_t kMaxParkMs = 20'000;
constexpr size_t kAgentsRemembered = 100;

}  // namespace

// --- nodes

NodeRegistration Coordinator::Register(uint32_t index, const std::string& agent, uint32_t processes,
                                       Instant now, uint64_t pod) {
  Node& node = nodes_[index];
  if (!node.agent.empty() && node.agent != agent) {
    // The end of a pod is told. One of which it was not may be at its work still, on its way out.
    const bool may_live = pod > node.pod && node.pod > node.ended_pod;
    if (may_live) {
      SetLeasesAside(index);
    } else {
      LoseLeases(index, now);
    }
    node.superseded.push_back(node.agent);
    if (node.superseded.size() > kAgentsRemembered) node.superseded.pop_front();
  }
  node.expired.clear();
  node.registered = true;
  node.seen = now;
  node.agent = agent;
  node.pod = pod;
  node.processes = std::max(1U, processes);
  node.gave_up = false;
  node.incarnation = {ledger_.epoch(), ++last_incarnation_};
  EndParks(index, now);
  Pump(now);
  const uint64_t range =
      (ledger_.epoch() - options_.first_epoch) * kIncarnationsOfEpoch + node.registrations++;
  return {node.incarnation, static_cast<uint32_t>(range * kProcessNames)};
}

// They are nobody's loss, and nobody else's for as long as its agent may believe that it has them.
void Coordinator::SetLeasesAside(uint32_t index) {
  for (const LeaseTable::Held& held : leases_.HeldBy(index)) {
    MayRunElsewhere(held.id, held.lease.deadline);
    EndLease({held.id, held.lease.fence});
  }
}

void Coordinator::LoseLeases(uint32_t index, Instant now) {
  for (const LeaseTable::Held& held : leases_.HeldBy(index)) {
    const LeaseName name{held.id, held.lease.fence};
    if (held.lease.started) {
      Lose(index, name);
      last_progress_ = now;  // what is lost again and again comes to an end by that
    } else {
      EndLease(name);
    }
  }
  for (const LeaseName& name : std::exchange(nodes_[index].expired, {})) {
    if (!state_.settled(name.id)) Lose(index, name);
  }
  Decide(now);
}

void Coordinator::Lose(uint32_t index, const LeaseName& name) {
  if (over()) return leases_.Release(name);
  Record(LostRecord{name.id, name.fence});
  const uint16_t losses = state_.batch(name.id).losses;
  if (losses < options_.max_losses || leases_.LiveBeside(name)) return leases_.Release(name);
  const std::string message = fmt::format(
      "its node died {} times while run() worked on it: look for what ends the whole node, such as "
      "memory",
      losses);
  // Without the lease's fence: nobody reported this, so that no later report is a repeat of it.
  FailedRecord failed;
  failed.id = name.id;
  failed.node = index;
  failed.cause = Cause::kProcessEnded;
  failed.end = AttemptEnd::kFinal;
  failed.kind = "LostTooOften";
  failed.message = message;
  Fail(failed, name);
}

void Coordinator::EndLease(const LeaseName& name) {
  const auto started = state_.started().find(name.id);
  if (!over() && started != state_.started().end() && started->second == name.fence) {
    Record(StartedRecord{name.id, name.fence, false});
  }
  leases_.Release(name);
}

// Nobody offered them: their node died together with the earlier coordinator.
void Coordinator::LoseWithheld() {
  const std::set<BatchId> ids = leases_.withheld();
  for (const BatchId id : ids) {
    const auto started = state_.started().find(id);
    if (started != state_.started().end()) Lose(0, {id, started->second});
  }
  leases_.EndWithholding();
}

void Coordinator::EndParks(uint32_t index, Instant now) {
  for (Waiting& waiting : waiting_) {
    if (waiting.node == index) waiting.park_until = now;
  }
}

void Coordinator::Leave(uint32_t index, const Incarnation& incarnation, Instant now) {
  const auto found = nodes_.find(index);
  if (found == nodes_.end() || found->second.incarnation != incarnation) return;
  found->second.registered = false;
  found->second.expired.clear();
  for (const LeaseTable::Held& held : leases_.HeldBy(index)) {
    EndLease({held.id, held.lease.fence});
  }
  EndParks(index, now);
  Pump(now);
}

bool Coordinator::IsRegistered(uint32_t index, const Incarnation& incarnation) const {
  const auto found = nodes_.find(index);
  return found != nodes_.end() && found->second.registered &&
         found->second.incarnation == incarnation;
}

void Coordinator::ConnectionGone(uint64_t exchange, Instant now) {
  const auto found = std::find_if(waiting_.begin(), waiting_.end(),
                                  [&](const Waiting& w) { return w.exchange == exchange; });
  if (found == waiting_.end()) return;  // it has its answer
  // Without speculation its agent may go on for as long as it was told.
  if (options_.speculation) leases_.Shorten(found->node, now, options_.broken_grace);
  waiting_.erase(found);
}

uint64_t Coordinator::Exchange(uint32_t index, const ExchangeRequest& request, Instant now,
                               Answer answer) {
  const uint64_t exchange = ++last_exchange_;
  if (request.incarnation.epoch > ledger_.epoch()) superseded_ = true;
  if (!IsRegistered(index, request.incarnation) ||
      request.settings_digest != options_.settings_digest) {
    answer(
        Error{Code::kStale, fmt::format("node {} is not registered as incarnation {}.{} of epoch "
                                        "{}: register again",
                                        index, request.incarnation.epoch,
                                        request.incarnation.number, ledger_.epoch())});
    return exchange;
  }
  Node& node = nodes_.at(index);
  node.seen = now;
  node.expired.clear();  // its agent lives
  // A node has one parked request; the newer one stands for it now.
  for (Waiting& waiting : waiting_) {
    if (waiting.node == index) {
      waiting.want = 0;
      waiting.park_until = now;
    }
  }
  Waiting waiting;
  waiting.exchange = exchange;
  waiting.node = index;
  waiting.incarnation = request.incarnation;
  waiting.number = request.number;
  waiting.want = request.want;
  waiting.park_until = now + milliseconds(std::min(request.park_ms, kMaxParkMs));
  waiting.answer = std::move(answer);

  if (request.unheard) EndUnheard(index, request);
  TakeEvents(index, node, request);
  node.heard = TakeHeld(index, node, request, now, waiting) || node.heard;
  TakeFinished(index, node, request, now, waiting);
  waiting.news = waiting.position > 0 || !waiting.reply.settled.empty() ||
                 !waiting.reply.refused.empty() || !waiting.reply.adopted.empty() ||
                 !request.parts.empty();
  waiting_.push_back(std::move(waiting));
  if (awaits_nodes_) awaits_nodes_ = !EveryNodeHeard();
  Decide(now);
  Pump(now);
  return exchange;
}

void Coordinator::EndUnheard(uint32_t index, const ExchangeRequest& request) {
  std::set<LeaseName> held;
  for (const HeldLease& lease : request.held) held.insert({lease.id, lease.fence});
  for (const LeaseTable::Held& one : leases_.HeldBy(index)) {
    const Lease& lease = one.lease;
    if (lease.incarnation != request.incarnation || lease.request >= request.number) continue;
    const LeaseName name{one.id, lease.fence};
    if (lease.request != request.open && !held.contains(name)) EndLease(name);
  }
}

bool Coordinator::EveryNodeHeard() const {
  for (uint32_t index = 0; index < options_.nodes; ++index) {
    const auto found = nodes_.find(index);
    if (found == nodes_.end() || !found->second.heard) return false;
  }
  return true;
}

void Coordinator::TakeEvents(uint32_t index, Node& node, const ExchangeRequest& request) {
  for (const ProcessEvent& event : request.events) {
    const std::string where = event.log.empty() ? "" : fmt::format(" (log {})", event.log);
    switch (event.kind) {
      case ProcessEvent::Kind::kReady: node.ever_ready = true; break;
      case ProcessEvent::Kind::kInitFailed:
        ++init_failures_;
        init_error_ = std::string(event.message) + where;
        break;
      case ProcessEvent::Kind::kScriptUnusable:
        if (!over()) {
          Conclude({Outcome::kFailed, "ScriptUnusable", std::string(event.message) + where});
        }
        break;
      case ProcessEvent::Kind::kExited: break;
      case ProcessEvent::Kind::kMetric: {
        // Told at least once; its number within its process, in decimal, makes a repeat known.
        uint64_t number = 0;
        std::from_chars(event.log.data(), event.log.data() + event.log.size(), number);
        uint64_t& last = node.metrics[event.process];
        if (number <= last) break;
        last = number;
        metrics_.push_back({index, event.process, std::string(event.message)});
        break;
      }
      case ProcessEvent::Kind::kHeader:
        if (!over() && state_.header().empty()) Record(HeaderRecord{event.message});
        break;
      case ProcessEvent::Kind::kGaveUp:
        node.gave_up = true;
        if (init_error_.empty()) init_error_ = std::string(event.message) + where;
        break;
    }
  }
}

bool Coordinator::TakeHeld(uint32_t index, const Node& node, const ExchangeRequest& request,
                           Instant now, Waiting& waiting) {
  const auto refuse = [&](BatchId id, const Fence& fence) {
    waiting.reply.refused.push_back({id, fence});
    if (now < withhold_until_) MayRunElsewhere(id, withhold_until_);
  };
  const auto adopt = [&](BatchId id, const Fence& fence, bool started) {
    const std::optional<Fence> adopted =
        over() ? std::nullopt
               : leases_.Adopt(index, node.incarnation, id, started, now, request.number);
    if (adopted) {
      waiting.reply.adopted.push_back({id, fence, *adopted});
    } else {
      refuse(id, fence);
    }
  };
  for (const HeldLease& held : request.held) {
    if (leases_.Renew(node.incarnation, held, now)) {
      NoteStarted(held);
      continue;
    }
    if (state_.Recorded(held.id, held.fence)) {
      // A renewal waits for no sync: it is settled when it is reported, or listed again.
      const bool durable = ledger_.appended() == ledger_.durable();
      if (durable) waiting.reply.settled.push_back({held.id, held.fence});
      continue;
    }
    // It expired (a partition, a slow network) and nobody else has it: go on.
    adopt(held.id, held.fence, held.started);
  }
  bool all = true;
  for (const OfferedLease& offer : request.offered) {
    if (Repeated({offer.id, offer.fence}, waiting)) continue;
    const Result<uint64_t> digest = plan_.Digest(state_, offer.id);
    if (!digest.ok() && state_.known(offer.id)) {
      all = false;  // the disk: it is offered again
      continue;
    }
    const bool same =
        PARALLELRUN_MUTATED(kOfferWithoutDigest) || (digest.ok() && *digest == offer.digest);
    if (!same) {
      refuse(offer.id, offer.fence);
    } else {
      adopt(offer.id, offer.fence, false);
    }
  }
  return all;
}

// So that the next epoch knows it, should the node die together with this coordinator.
void Coordinator::NoteStarted(const HeldLease& held) {
  if (!held.started || over() || state_.batch(held.id).losses == 0) return;
  const auto known = state_.started().find(held.id);
  if (known != state_.started().end() && known->second == held.fence) return;
  Record(StartedRecord{held.id, held.fence, true});
}

bool Coordinator::Repeated(const LeaseName& name, Waiting& waiting) {
  if (!state_.Recorded(name.id, name.fence)) return false;
  // Recorded, perhaps a moment ago: the answer waits for all that was appended so far.
  waiting.position = std::max(waiting.position, ledger_.appended());
  waiting.reply.settled.push_back(name);
  return true;
}

void Coordinator::TakeFinished(uint32_t index, const Node& node, const ExchangeRequest& request,
                               Instant now, Waiting& waiting) {
  for (const RowsPart& part : request.parts) {
    if (over() || !leases_.Holds(node.incarnation, part.id, part.fence)) continue;
    if (part.offset != state_.PartBytes(part.id, part.fence)) continue;  // a repeat
    const auto at = Record(RowsRecord{part.id, part.fence, part.rows});
    waiting.position = std::max(waiting.position, at.position);
  }
  for (const Finished& done : request.finished) {
    const LeaseName name{done.id, done.fence};
    if (Repeated(name, waiting)) continue;
    if (over() || !leases_.Holds(node.incarnation, done.id, done.fence)) {
      std::optional<Fence> adopted;
      if (!over() && done.kind == Finished::Kind::kSucceeded) {
        adopted = leases_.Adopt(index, node.incarnation, done.id, true, now, request.number);
      }
      if (adopted) {
        waiting.reply.adopted.push_back({done.id, done.fence, *adopted});
      } else {
        waiting.reply.refused.push_back(name);
      }
      continue;
    }
    switch (done.kind) {
      case Finished::Kind::kReturned: EndLease(name); break;
      case Finished::Kind::kSucceeded: {
        if (done.rows_offset != state_.PartBytes(done.id, done.fence)) {
          leases_.Release(name);
          waiting.reply.refused.push_back(name);  // a part is missing: run it again
          continue;
        }
        const auto at =
            Record(ResultRecord{done.id, done.fence, index, done.process, done.run_ns,
                                done.items_succeeded, done.row_count, done.rows, Times(done, now)});
        waiting.position = std::max(waiting.position, at.position);
        leases_.ReleaseAll(done.id);
        elapsed_seconds_ += static_cast<double>(done.elapsed_ns) / 1e9;
        ++elapsed_results_;
        last_progress_ = now;
        break;
      }
      case Finished::Kind::kFailed: {
        FailedRecord failed;
        failed.id = done.id;
        failed.fence = done.fence;
        failed.node = index;
        failed.process = done.process;
        failed.run_ns = done.run_ns;
        failed.cause = done.cause;
        failed.end = EndOfAttempt(name);
        failed.kind = done.error_kind;
        failed.message = done.message;
        failed.log = done.log;
        failed.output = done.output;
        failed.times = Times(done, now);
        waiting.position = std::max(waiting.position, Fail(failed, name));
        last_progress_ = now;
        break;
      }
    }
    waiting.reply.settled.push_back(name);
  }
}

AttemptEnd Coordinator::EndOfAttempt(const LeaseName& name) const {
  const MiniBatch& batch = state_.batch(name.id);
  const bool splits = options_.isolate_failures && batch.items > 1 && HasPieces(name.id);
  // A piece of several items needs no second try: splitting it loses nothing.
  uint32_t tries = splits && IsPiece(name.id) ? 1 : options_.run_max_try;
  if (PARALLELRUN_MUTATED(kRunMaxTryIgnored)) ++tries;
  if (batch.failed_attempts + 1U < tries || leases_.LiveBeside(name)) return AttemptEnd::kAgain;
  return splits ? AttemptEnd::kSplit : AttemptEnd::kFinal;
}

uint64_t Coordinator::Fail(const FailedRecord& failed, const LeaseName& lease) {
  const uint64_t position = Record(failed).position;
  if (failed.end == AttemptEnd::kAgain) {
    leases_.Release(lease);
    RetryOnceDurable(position, failed.id);
    return position;
  }
  leases_.ReleaseAll(failed.id);
  if (failed.end == AttemptEnd::kSplit) {
    leases_.AllowPieces(failed.id);
    RetryOnceDurable(position, FirstPiece(failed.id));
    RetryOnceDurable(position, SecondPiece(failed.id));
  }
  return position;
}

void Coordinator::RetryOnceDurable(uint64_t position, BatchId id) {
  if (options_.speculation) return;
  leases_.HoldBack(id);
  undurable_failures_.emplace_back(position, id);
}

void Coordinator::MayRunElsewhere(BatchId id, Instant until) {
  if (options_.speculation) return;
  const auto [entry, first] = elsewhere_.emplace(id, until);
  if (first) leases_.HoldBack(id);
  entry->second = std::max(entry->second, until);
}

AttemptTimes Coordinator::Times(const Finished& done, Instant now) const {
  return {done.elapsed_ns, done.cpu_ns, (now.time_since_epoch() + options_.wall_offset).count()};
}

}  // namespace parallelrun
