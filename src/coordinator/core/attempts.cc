#include "coordinator/core/attempts.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <string>

#include "base/count_of.h"
#include "coordinator/item_names.h"
#include "job/failure_text.h"

namespace parallelrun::coordinator {
namespace {

constexpr double kSlowFactor = 3;  // times the mean

// Right in front of the record of the attempt, which has no place for it.
void AddUsage(Journal& journal, const job::Finished& done) {
  const std::string usage = job::EncodeUsage({done.id, done.fence}, done);
  if (!usage.empty()) journal.Add(job::UnknownRecord{job::kUsageType, usage});
}

}  // namespace

// --- what its agent says

// So that the next epoch knows it, should the node die together with this coordinator.
void Attempts::Began(const job::HeldLease& held) {
  const job::JobState& state = journal_.state();
  if (!held.started || journal_.decided() || state.batch(held.id).losses == 0) return;
  const auto known = state.started().find(held.id);
  if (known != state.started().end() && known->second == held.fence) return;
  journal_.Add(job::StartedRecord{held.id, held.fence, true});
}

uint64_t Attempts::Succeeded(uint32_t node, const job::Finished& done, int64_t wall_us) {
  AddUsage(journal_, done);
  if (done.items_skipped > 0) {
    journal_.Add(job::SkippedRecord{done.id, done.fence, done.items_skipped});
  }
  job::ResultRecord result{done.result(), done.id, done.fence, node, done.process, done.rows};
  result.finished_us = wall_us;
  const uint64_t position = journal_.Add(result);
  availability_.Settle(done.id);
  last_chances_.erase(done.id);
  elapsed_seconds_ += static_cast<double>(done.elapsed_ns) / 1e9;
  ++elapsed_results_;
  return position;
}

uint64_t Attempts::Failed(uint32_t node, const job::Finished& done, int64_t wall_us) {
  const job::LeaseName name{done.id, done.fence};
  job::FailedRecord failed;
  failed.result() = done.result();
  failed.id = done.id;
  failed.fence = done.fence;
  failed.node = node;
  failed.process = done.process;
  failed.cause = done.cause;
  failed.kind = Bounded(done.error_kind);
  failed.message = Bounded(done.message);
  // What does not fit the types of the columns will not fit them then.
  failed.end = EndOf(
      name, failed.cause == job::Cause::kMisfit || job::OfDebugger(failed.kind, failed.message));
  failed.log = Bounded(done.log);
  failed.output = done.output;
  failed.finished_us = wall_us;
  AddUsage(journal_, done);
  return Fail(failed, name);
}

job::AttemptEnd Attempts::EndOf(const job::LeaseName& name, bool hopeless) const {
  const job::MiniBatch& batch = journal_.state().batch(name.id);
  const bool splits = limits_.spec.isolate_failures && batch.items > 1 && job::HasPieces(name.id);
  // A piece of several items needs no second try: splitting it loses nothing.
  const bool once = hopeless || (splits && job::IsPiece(name.id));
  const uint32_t tries = once ? 1 : static_cast<uint32_t>(limits_.spec.run_max_try);
  // While another lease of it is live, that one may still succeed.
  if (batch.failed_attempts + 1U < tries || availability_.LiveBeside(name)) {
    return job::AttemptEnd::kAgain;
  }
  return splits ? job::AttemptEnd::kSplit : job::AttemptEnd::kFinal;
}

uint64_t Attempts::Fail(const job::FailedRecord& failed, const job::LeaseName& lease) {
  const uint64_t position = journal_.Add(failed);
  failed_.Add({failed.id, journal_.state().batch(failed.id).failed_attempts,
               failed.end == job::AttemptEnd::kFinal, failed.node, failed.process,
               std::string(failed.kind), std::string(failed.message), std::string(failed.log)});
  if (failed.end != job::AttemptEnd::kAgain) last_chances_.erase(failed.id);
  switch (failed.end) {
    case job::AttemptEnd::kAgain: availability_.Retry(lease, position); break;
    case job::AttemptEnd::kSplit: availability_.Split(failed.id, position); break;
    case job::AttemptEnd::kFinal: availability_.Settle(failed.id); break;
  }
  return position;
}

// What was recorded as begun would be a loss for the next epoch, which finds nobody who offers it.
void Attempts::HandBack(const job::LeaseName& name) {
  const auto& began = journal_.state().started();
  const auto found = began.find(name.id);
  if (!journal_.decided() && found != began.end() && found->second == name.fence) {
    journal_.Add(job::StartedRecord{name.id, name.fence, false});
  }
  availability_.End(name);
}

void Attempts::NoteLastChance(job::BatchId id) {
  const job::JobState& state = journal_.state();
  const bool last = state.batch(id).losses + 1U >= limits_.max_losses && !state.settled(id);
  if (!last || last_chances_.contains(id)) return;
  last_chances_[id] = ItemsOfMiniBatch(state, plan_, id);
}

// --- its node is gone

void Attempts::HandBackAll(uint32_t node) {
  for (const job::Held& one : availability_.HeldBy(node)) HandBack({one.id, one.lease.fence});
}

void Attempts::SetAside(uint32_t node) {
  for (const job::Held& one : availability_.HeldBy(node)) {
    availability_.BlockUntil(one.id, one.lease.deadline);
    HandBack({one.id, one.lease.fence});
  }
}

// What an agent told last is old when run() takes milliseconds: any that it held may have ended it.
void Attempts::NarrowDown(const std::vector<job::Held>& held) {
  if (held.size() < 2 || journal_.decided()) return;
  job::CompanyRecord once{job::kHeldOnce, {}};
  job::CompanyRecord again{static_cast<uint32_t>(held.size() / 2), {}};
  for (const job::Held& one : held) {
    (journal_.state().companies().HeldAtDeath(one.id) ? again : once).ids.push_back(one.id);
  }
  if (!once.ids.empty()) journal_.Add(once);
  if (!again.ids.empty()) journal_.Add(again);
}

void Attempts::NodeDied(uint32_t node, const std::vector<job::Held>& held, const PodEnd* end,
                        int64_t wall_us) {
  NarrowDown(held);
  const auto began = [](const job::Held& one) { return one.lease.started; };
  const auto begun = std::count_if(held.begin(), held.end(), began);
  // What was alone had begun: a script may end its node faster than the agent can tell.
  const bool alone = held.size() == 1;
  const bool memory = end != nullptr && end->reason == kOutOfMemory && (alone || begun == 1);
  for (const job::Held& one : held) {
    const job::LeaseName name{one.id, one.lease.fence};
    const bool counts = alone || began(one);
    if (!counts || journal_.decided()) {
      HandBack(name);
      availability_.Reconsider(name.id);
    } else if (memory) {
      FailForMemory(name, *end, wall_us);
    } else {
      Lost(node, name);
    }
  }
}

void Attempts::Lost(uint32_t node, const job::LeaseName& name) {
  if (journal_.decided()) return availability_.End(name);
  journal_.Add(job::LostRecord{name.id, name.fence});
  availability_.Reconsider(name.id);
  const uint16_t losses = journal_.state().batch(name.id).losses;
  if (losses < limits_.max_losses || availability_.LiveBeside(name)) return availability_.End(name);
  const std::string items = ItemsOfLost(name.id);
  const std::string message = fmt::format(
      "mini-batch {}{} ends its node: {} died that ran it or held nothing else; look for what "
      "ends a whole node, such as memory or a full disk, fix it, and run again what failed",
      job::MiniBatchText(name.id), items.empty() ? "" : " (" + items + ")",
      CountOf(losses, "node"));
  // Without the lease's fence: nobody reported this, so that no later report is a repeat of it.
  job::FailedRecord failed;
  failed.id = name.id;
  failed.node = node;
  failed.cause = job::Cause::kProcessEnded;
  failed.end = job::AttemptEnd::kFinal;
  failed.kind = job::kLostTooOften;
  failed.message = Bounded(message);
  Fail(failed, name);
}

std::string Attempts::ItemsOfLost(job::BatchId id) {
  const auto noted = last_chances_.find(id);
  if (noted != last_chances_.end()) return noted->second;
  const bool at_hand = plan_.AtHand(journal_.state(), id);
  return at_hand ? ItemsOfMiniBatch(journal_.state(), plan_, id) : "";
}

// Without the lease's fence: nobody reported this, so that no later report is a repeat of it.
void Attempts::FailForMemory(const job::LeaseName& name, const PodEnd& end, int64_t wall_us) {
  const std::string message = fmt::format(
      "the container of node {} was killed for lack of memory (OOMKilled, exit status {}) while "
      "this was the only mini-batch that ran there: raise spec.resources.limits.memory, or lower "
      "spec.miniBatchSize",
      end.node, end.exit_code);
  job::FailedRecord failed;
  failed.id = name.id;
  failed.node = end.node;
  failed.cause = job::Cause::kProcessEnded;
  failed.end = EndOf(name, false);
  failed.kind = kOutOfMemory.word();
  failed.message = message;
  failed.finished_us = wall_us;
  Fail(failed, name);
}

// --- a second lease

std::optional<Duration> Attempts::Slow() const {
  if (!limits_.speculation || elapsed_results_ == 0 || !journal_.state().plan_ended()) {
    return std::nullopt;
  }
  if (availability_.pending() > 0) return std::nullopt;
  const double mean = elapsed_seconds_ / static_cast<double>(elapsed_results_);
  const auto much = Duration(static_cast<int64_t>(kSlowFactor * mean * 1e6));
  return std::max(much, limits_.slow_least);
}

}  // namespace parallelrun::coordinator
