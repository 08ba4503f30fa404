// The exchange: what a node reports, and what becomes of it.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include "base/escape.h"
#include "base/mutation.h"
#include "coordinator/coordinator.h"
#include "job/failure_text.h"

namespace parallelrun {
namespace {

constexpr uint32_t kMaxParkMs = 20'000;
constexpr size_t kMaxText = size_t{4} << 10;  // agents cut them too

// What a node says goes to the ledger and into memory.
std::string_view Bounded(std::string_view text) { return Front(text, kMaxText); }

RefusedReport::Kind KindOf(const Finished& done) {
  return done.kind == Finished::Kind::kFailed ? RefusedReport::Kind::kFailedAttempt
                                              : RefusedReport::Kind::kResult;
}

}  // namespace

uint64_t Coordinator::Exchange(uint32_t index, const ExchangeRequest& request, Instant now,
                               Answer answer) {
  working_.Pass(now);
  const uint64_t exchange = waiters_.Name();
  if (request.incarnation.epoch > ledger_.epoch()) newest_.Named(request.incarnation.epoch, now);
  if (!IsRegistered(index, request.incarnation) ||
      request.settings_digest != options_.settings_digest) {
    RefuseAll(index, request);
    answer(
        Error{Code::kStale, fmt::format("node {} is not registered as incarnation {}.{} of epoch "
                                        "{}: register again",
                                        index, request.incarnation.epoch,
                                        request.incarnation.number, ledger_.epoch())});
    return exchange;
  }
  Node& node = *nodes_.Find(index);
  node.seen = working_.At(now);
  node.expired.clear();  // its agent lives
  // A node has one parked request; the newer one stands for it now.
  waiters_.Release(index, now);
  Waiter waiting;
  waiting.exchange = exchange;
  waiting.node = index;
  waiting.incarnation = request.incarnation;
  waiting.number = request.number;
  waiting.want = request.want;
  waiting.arrived = now;
  waiting.park_until = now + milliseconds(std::min(request.park_ms, kMaxParkMs));
  waiting.answer = std::move(answer);

  if (request.unheard) EndUnheard(index, request);
  TakeEvents(index, node, request, waiting);
  node.heard = TakeHeld(index, node, request, now, waiting) || node.heard;
  TakeFinished(index, node, request, now, waiting);
  if (!refused_.empty()) NoteRefused(index, node, request.incarnation);
  waiting.news = waiting.position > 0 || !waiting.reply.settled.empty() ||
                 !waiting.reply.refused.empty() || !waiting.reply.adopted.empty() ||
                 !request.parts.empty() ||
                 (request.unheard && closing_.tells());  // which may be what was not heard
  waiters_.Add(std::move(waiting));
  if (availability_.awaits_nodes() && nodes_.AllHeard()) availability_.OpenGate();
  Decide(now);
  AnswerWoken(now);
  return exchange;
}

void Coordinator::EndUnheard(uint32_t index, const ExchangeRequest& request) {
  std::set<LeaseName> held;
  for (const HeldLease& lease : request.held) held.insert({lease.id, lease.fence});
  for (const Held& one : availability_.HeldBy(index)) {
    const Lease& lease = one.lease;
    if (lease.incarnation != request.incarnation || lease.request >= request.number) continue;
    const LeaseName name{one.id, lease.fence};
    if (lease.request != request.open && !held.contains(name)) EndLease(name);
  }
}

void Coordinator::TakeEvents(uint32_t index, Node& node, const ExchangeRequest& request,
                             Waiter& waiting) {
  for (const ProcessEvent& event : request.events) {
    const std::string_view message = Bounded(event.message);
    const std::string where = event.log.empty() ? "" : fmt::format(" (log {})", Bounded(event.log));
    switch (event.kind) {
      case ProcessEvent::Kind::kReady: node.ever_ready = true; break;
      case ProcessEvent::Kind::kInitFailed:
        ++init_failures_;
        init_error_ = std::string(message) + where;
        break;
      case ProcessEvent::Kind::kScriptUnusable:
        // One that starts too late is not needed any more.
        if (!over() && phase_ != Phase::kClosing) {
          Conclude({Outcome::kFailed, "ScriptUnusable", std::string(message) + where});
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
      case ProcessEvent::Kind::kNoRoom: node.no_room = message; break;
      case ProcessEvent::Kind::kRanOut: node.ran_out = message; break;
      case ProcessEvent::Kind::kGaveUp:
        nodes_.GiveUp(node);
        if (init_error_.empty()) init_error_ = std::string(message) + where;
        break;
      case ProcessEvent::Kind::kOwing:
        LoseShutdowns(NotNamed(state_.shutdowns().OpenOf(index), event.message),
                      "the process was gone");
        break;
      case ProcessEvent::Kind::kOwes:
      case ProcessEvent::Kind::kClosed:
      case ProcessEvent::Kind::kCloseFailed:
      case ProcessEvent::Kind::kCutOff:
      case ProcessEvent::Kind::kCloseLost: TakeShutdown(index, event, waiting); break;
    }
  }
}

// Told at least once, and not again once it is durable: the next epoch must know it too.
void Coordinator::TakeShutdown(uint32_t index, const ProcessEvent& event, Waiter& waiting) {
  if (over()) return;
  const ProcessEnd end = EndOf(event.kind);
  if (!state_.shutdowns().Knows({index, event.process}, end)) {
    Record(ShutdownRecord{index, event.process, end, Bounded(event.message), Bounded(event.log)});
  }
  waiting.position = std::max(waiting.position, ledger_.appended());
}

bool Coordinator::TakeHeld(uint32_t index, const Node& node, const ExchangeRequest& request,
                           Instant now, Waiter& waiting) {
  const Instant worked = working_.At(now);
  const auto refuse = [&](BatchId id, const Fence& fence, RefusedReport::Kind kind,
                          RefusalReason why) {
    Refuse({id, fence}, kind, why, waiting);
    availability_.HoldRefused(id, worked);
  };
  const auto adopt = [&](BatchId id, const Fence& fence, RefusedReport::Kind kind, bool started) {
    const std::optional<Fence> adopted =
        over()
            ? std::nullopt
            : availability_.Adopt({index, node.incarnation, request.number}, id, started, worked);
    if (adopted) {
      waiting.reply.adopted.push_back({id, fence, *adopted});
    } else {
      refuse(id, fence, kind, WhyRefused(id));
    }
  };
  for (const HeldLease& held : request.held) {
    if (availability_.Renew(node.incarnation, held, worked)) {
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
    adopt(held.id, held.fence, RefusedReport::Kind::kLease, held.started);
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
      refuse(offer.id, offer.fence, RefusedReport::Kind::kOffer,
             digest.ok() ? RefusalReason::kContent : RefusalReason::kUnknown);
    } else {
      adopt(offer.id, offer.fence, RefusedReport::Kind::kOffer, false);
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

bool Coordinator::Repeated(const LeaseName& name, Waiter& waiting) {
  if (!state_.Recorded(name.id, name.fence)) return false;
  // Recorded, perhaps a moment ago: the answer waits for all that was appended so far.
  waiting.position = std::max(waiting.position, ledger_.appended());
  waiting.reply.settled.push_back(name);
  return true;
}

void Coordinator::TakeFinished(uint32_t index, const Node& node, const ExchangeRequest& request,
                               Instant now, Waiter& waiting) {
  for (const RowsPart& part : request.parts) {
    if (over() || !availability_.Has(node.incarnation, {part.id, part.fence})) continue;
    if (part.offset != state_.PartBytes(part.id, part.fence)) continue;  // a repeat
    const auto at = Record(RowsRecord{part.id, part.fence, part.rows});
    waiting.position = std::max(waiting.position, at.position);
  }
  std::set<LeaseName> adopted_now;  // held, and told again under the new fence
  for (const Adopted& one : waiting.reply.adopted) adopted_now.insert({one.id, one.old_fence});
  for (const Finished& done : request.finished) {
    const LeaseName name{done.id, done.fence};
    if (Repeated(name, waiting) || adopted_now.contains(name)) continue;
    if (over() || !availability_.Has(node.incarnation, name)) {
      std::optional<Fence> adopted;
      if (!over() && done.kind == Finished::Kind::kSucceeded) {
        adopted = availability_.Adopt({index, node.incarnation, request.number}, done.id, true,
                                      working_.At(now));
      }
      if (adopted) {
        waiting.reply.adopted.push_back({done.id, done.fence, *adopted});
      } else if (done.kind == Finished::Kind::kReturned) {
        waiting.reply.refused.push_back(name);  // as good as taken
      } else {
        Refuse(name, KindOf(done), WhyRefused(done.id), waiting);
      }
      continue;
    }
    switch (done.kind) {
      case Finished::Kind::kReturned: EndLease(name); break;
      case Finished::Kind::kSucceeded: {
        if (done.rows_offset != state_.PartBytes(done.id, done.fence)) {
          availability_.End(name);  // run it again
          Refuse(name, KindOf(done), RefusalReason::kIncomplete, waiting);
          continue;
        }
        if (done.items_skipped > 0) Record(SkippedRecord{done.id, done.fence, done.items_skipped});
        const auto at =
            Record(ResultRecord{done.id, done.fence, index, done.process, done.run_ns,
                                done.items_succeeded, done.row_count, done.rows, Times(done, now)});
        waiting.position = std::max(waiting.position, at.position);
        availability_.Settle(done.id);
        elapsed_seconds_ += static_cast<double>(done.elapsed_ns) / 1e9;
        ++elapsed_results_;
        last_progress_ = working_.At(now);
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
        failed.end = EndOfAttempt(name, failed.cause);
        failed.kind = Bounded(done.error_kind);
        failed.message = Bounded(done.message);
        failed.log = Bounded(done.log);
        failed.output = done.output;
        failed.times = Times(done, now);
        waiting.position = std::max(waiting.position, Fail(failed, name));
        NoteFailure(failed);
        last_progress_ = working_.At(now);
        break;
      }
    }
    waiting.reply.settled.push_back(name);
  }
}

void Coordinator::NoteFailure(const FailedRecord& failed) {
  if (state_.counts().succeeded > 0 || !OfProgram(failed.kind, failed.message)) return;
  program_failed_[failed.node].insert(failed.process);
  program_failed_at_.insert(WholeOf(failed.id));
}

// --- what is not taken

void Coordinator::Refuse(const LeaseName& name, RefusedReport::Kind kind, RefusalReason why,
                         Waiter& waiting) {
  waiting.reply.refused.push_back(name);
  refused_.push_back({name, kind, why});
}

// Of what is not leased to whom it comes from, and cannot be adopted.
RefusalReason Coordinator::WhyRefused(BatchId id) const {
  if (over()) return RefusalReason::kJobOver;
  if (!state_.known(id)) return RefusalReason::kUnknown;
  if (state_.settled(id)) return RefusalReason::kSettled;
  return availability_.Leased(id) ? RefusalReason::kLeased : RefusalReason::kExpired;
}

// What is finished is among the held too: it counts once, as what came of it.
void Coordinator::NoteRefused(uint32_t index, const Node& node, const Incarnation& incarnation) {
  std::stable_sort(refused_.begin(), refused_.end(),
                   [](const auto& a, const auto& b) { return a.name < b.name; });
  for (size_t i = 0; i < refused_.size(); ++i) {
    const bool last = i + 1 == refused_.size() || refused_[i + 1].name != refused_[i].name;
    if (last) refusals_.Note(index, node.pod, incarnation, refused_[i]);
  }
  refused_ = {};
}

void Coordinator::RefuseAll(uint32_t index, const ExchangeRequest& request) {
  for (const Finished& done : request.finished) {
    if (done.kind == Finished::Kind::kReturned) continue;
    refusals_.Note(index, 0, request.incarnation,
                   {{done.id, done.fence}, KindOf(done), RefusalReason::kStale});
  }
}

AttemptTimes Coordinator::Times(const Finished& done, Instant now) const {
  return {done.elapsed_ns, done.cpu_ns, (now.time_since_epoch() + options_.wall_offset).count()};
}

}  // namespace parallelrun
