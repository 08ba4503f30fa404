// What people and the cluster tell the coordinator of a running job.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

#include "coordinator/coordinator.h"

namespace parallelrun {

void Coordinator::Control(const ControlRequest& control, Instant now) {
  working_.Pass(now);
  const uint64_t generation = control.generation.value_or(control_generation_);
  if (generation >= control_generation_) {
    control_generation_ = generation;
    SetThresholds(control.ChangedFrom(options_.rules.thresholds), now);
    if (control.nodes) SetNodes(*control.nodes, now);
  }
  for (const PodEnd& end : control.pod_ends) OnPodEnd(end, now);
  if (control.drain) Drain(now);
  if (control.cancel) Cancel(now);
}

void Coordinator::Drain(Instant now) {
  drains_ = true;
  if (phase_ == Phase::kRunning) phase_ = Phase::kDraining;
  waiters_.WakeAll();
  AnswerWoken(now);
}

void Coordinator::Cancel(Instant now) {
  if (!over()) Conclude({Outcome::kFailed, "Canceled", "canceled by request"});
  AnswerWoken(now);
}

void Coordinator::SetNodes(uint32_t nodes, Instant now) {
  nodes_.Expect(nodes);
  waiters_.WakeAll();
  Decide(now);
  AnswerWoken(now);
}

void Coordinator::SetThresholds(const Thresholds& thresholds, Instant now) {
  if (over() || thresholds == options_.rules.thresholds || !state_.settings()) return;
  options_.rules.thresholds = thresholds;
  const Settings before = *state_.settings();
  const std::string job = WithThresholds(before.job, thresholds);
  SettingsRecord settings;
  settings.generation = before.generation;
  settings.wall_us = (now.time_since_epoch() + options_.wall_offset).count();
  settings.code_digest = before.code_digest;
  settings.resource_uid = before.resource_uid;
  settings.plan_settings = before.plan_settings;
  settings.job = job;
  Record(settings);
  Decide(now);
  AnswerWoken(now);
}

void Coordinator::OnPodEnd(const PodEnd& end, Instant now) {
  working_.Pass(now);
  Node* const found = nodes_.Find(end.node);
  if (found == nullptr || end.incarnation <= found->ended_pod) return;
  Node& node = *found;
  node.ended_pod = end.incarnation;
  // Where the number is unknown, an agent with an open call is not the one that died.
  const bool other = node.pod != 0 ? node.pod != end.incarnation : waiters_.Has(end.node);
  if (other) return;
  const bool memory = end.reason == "OOMKilled";
  const bool died = memory || end.reason == "Killed" || end.reason == "Error";
  if (died) {
    LoseLeases(end.node, &end, now);
  } else {
    node.expired.clear();
    for (const Held& one : availability_.HeldBy(end.node)) {
      EndLease({one.id, one.lease.fence});
    }
  }
  if (memory && !node.ever_ready) {
    init_failures_ += node.processes;
    init_error_ = fmt::format(
        "the container of node {} was killed for lack of memory (OOMKilled) before init() had "
        "ended: raise spec.resources.limits.memory, or lower spec.processCountPerNode",
        end.node);
  }
  Nodes::Depart(node);
  LoseShutdowns(state_.shutdowns().OpenOf(end.node), "its pod has ended");
  waiters_.Release(end.node, now);
  Decide(now);
  AnswerWoken(now);
}

// Without the lease's fence: nobody reported this, so that no later report is a repeat of it.
void Coordinator::FailForMemory(const LeaseName& name, const PodEnd& end, Instant now) {
  const std::string message = fmt::format(
      "the container of node {} was killed for lack of memory (OOMKilled, exit status {}) while "
      "this was the only mini-batch that ran there: raise spec.resources.limits.memory, or lower "
      "spec.miniBatchSize",
      end.node, end.exit_code);
  FailedRecord failed;
  failed.id = name.id;
  failed.node = end.node;
  failed.cause = Cause::kProcessEnded;
  failed.end = EndOfAttempt(name, failed.cause);
  failed.kind = "OOMKilled";
  failed.message = message;
  failed.times.finished_us = (now.time_since_epoch() + options_.wall_offset).count();
  Fail(failed, name);
  last_progress_ = working_.At(now);
}

}  // namespace parallelrun
