#include "coordinator/core/ending.h"

#include "job/verdict.h"

namespace parallelrun::coordinator {

Ending::Ending(const job::FailureRules& rules, Duration shutdown_timeout, Journal& journal)
    : rules_(rules), journal_(journal), closing_(shutdown_timeout) {
  const job::JobState& state = journal.state();
  if (!state.verdict()) return;
  phase_ = state.verdict()->outcome == job::Outcome::kSucceeded && !state.published()
               ? Phase::kFinalizing
               : Phase::kEnded;
}

job::Directive Ending::DirectiveFor(bool expected) const {
  if (journal_.decided()) return job::Directive::kFinish;
  if (drains_ || !expected) return job::Directive::kDrain;
  return closing_.tells() ? job::Directive::kClose : job::Directive::kGoOn;
}

// --- people

void Ending::Drain() {
  drains_ = true;
  if (phase_ == Phase::kRunning) phase_ = Phase::kDraining;
}

bool Ending::SetThresholds(const job::Thresholds& thresholds, int64_t wall_us) {
  const std::optional<job::Settings>& in_force = journal_.state().settings();
  if (journal_.decided() || thresholds == rules_.thresholds || !in_force) return false;
  rules_.thresholds = thresholds;
  const job::Settings before = *in_force;
  const std::string job = job::WithThresholds(before.job, thresholds);
  job::SettingsRecord settings;
  settings.generation = before.generation;
  settings.wall_us = wall_us;
  settings.code_digest = before.code_digest;
  settings.resource_uid = before.resource_uid;
  settings.plan_settings = before.plan_settings;
  settings.job = job;
  journal_.Add(settings);
  return true;
}

// --- shutdown() of processes

// Told at least once, and not again once it is durable: the next epoch must know it too.
void Ending::TakeShutdown(uint32_t node, const job::ProcessEvent& event) {
  const job::ProcessEnd end = EndOf(event.kind);
  if (journal_.decided() || journal_.state().shutdowns().Knows({node, event.process}, end)) return;
  journal_.Add(
      job::ShutdownRecord{node, event.process, end, Bounded(event.message), Bounded(event.log)});
}

void Ending::LoseShutdowns(const std::vector<job::ProcessId>& processes, const std::string& why) {
  if (journal_.decided()) return;
  for (const job::ProcessId& process : processes) {
    journal_.Add(job::ShutdownRecord{process.node, process.number, job::ProcessEnd::kLost,
                                     why + " before its shutdown() had ended", ""});
  }
}

// --- the verdict

void Ending::Conclude(const job::Verdict& verdict) {
  if (journal_.decided()) return;
  phase_ = Phase::kDeciding;
  job::VerdictRecord record;
  record.outcome = verdict.outcome;
  record.reason = verdict.reason;
  record.message = verdict.message;
  verdict_position_ = journal_.Add(record);
}

Ending::Then Ending::Finish(const job::Verdict& verdict, WorkInstant worked) {
  const bool done =
      verdict.outcome == job::Outcome::kSucceeded || verdict.reason == job::kShutdownFailed;
  const bool waits = done && journal_.state().shutdowns().AnyOpen();
  if (!waits) {
    Conclude(verdict);
    return {};
  }
  if (phase_ == Phase::kClosing) return {};
  phase_ = Phase::kClosing;
  // A process that is told to stop cannot go on: the next epoch must find all settled too.
  closing_.Begin(worked, journal_.appended());
  return {.wake = closing_.Durable(journal_.durable())};
}

Ending::Then Ending::Durable(Instant now) {
  const uint64_t durable = journal_.durable();
  Then then;
  if (phase_ == Phase::kDeciding && durable >= verdict_position_ && !verdict_durable_at_) {
    // Nobody is told before a look that began now, or later, has found no newer epoch.
    verdict_durable_at_ = now;
    then.look = true;
  }
  then.wake = closing_.Durable(durable);  // now they may be told
  if (phase_ == Phase::kFinalizing && published_position_ > 0 && durable >= published_position_) {
    phase_ = Phase::kEnded;
  }
  return then;
}

Ending::Then Ending::Looked(Instant begun, bool none) {
  if (phase_ != Phase::kDeciding || !verdict_durable_at_) return {};
  if (!none || begun < *verdict_durable_at_) return {.look = true};
  phase_ = journal_.state().verdict()->outcome == job::Outcome::kSucceeded ? Phase::kFinalizing
                                                                           : Phase::kEnded;
  return {.wake = true};
}

void Ending::Publish(const job::PublishedRecord& published) {
  published_position_ = journal_.Add(published);
}

}  // namespace parallelrun::coordinator
