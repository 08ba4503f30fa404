// How a job ends: by its coordinator's verdict, or by a rule of the operator's.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cctype>

#include "api/defaults.h"
#include "base/count_of.h"
#include "operator/plan/draft.h"

namespace parallelrun::operators {
namespace {

using reasons::Reason;
using reasons::Said;

// How long a coordinator may take to end by itself: logs are uploaded, the ledger is closed.
constexpr Duration kCoordinatorGrace = seconds(60);
// How old the news may be that an object is gone.
constexpr Duration kGoneLasts = seconds(60);
// Something else may hold what is being deleted (a finalizer): not at once, and again.
constexpr Duration kLookWhetherGone = seconds(2);
constexpr char kTtlPassed[] = "ttlSecondsAfterFinished has passed";
constexpr char kIsOver[] = "the job is over";

// A condition's reason must be a CamelCase word; this one came over the network.
std::string ReasonWord(const std::string& reason, Reason otherwise) {
  const bool word = !reason.empty() && reason.size() <= 128 && std::isalpha(reason[0]) != 0 &&
                    std::all_of(reason.begin(), reason.end(),
                                [](unsigned char c) { return c < 0x80 && std::isalnum(c) != 0; });
  return word ? reason : std::string(otherwise);
}

// Of a job that has succeeded: the words that its coordinator has for one that did not go wholly
// well stay; every other one is "Completed", the convention of conditions.
std::string ReasonOfSuccess(const std::string& said) {
  const bool not_well = said == kCompletedWithFailures || said == Reason("ShutdownFailed");
  return not_well ? said : std::string(kCompleted);
}

CoordinatorVerdict OfReport(const ReportVerdict& verdict) {
  if (!verdict.succeeded) return {false, ReasonWord(verdict.reason, "JobFailed"), verdict.message};
  return {true, ReasonOfSuccess(verdict.reason), verdict.message};
}

// From a coordinator that has ended: exit codes of docs/coordinator-api.md.
std::optional<CoordinatorVerdict> OfLastWords(const Ended& ended, std::optional<Report>& report) {
  const bool not_published = ended.exit_code == 6;
  if (ended.exit_code < 0 || (ended.exit_code > 2 && !not_published)) return std::nullopt;
  LastWords words = ParseLastWords(ended.message);
  // 0 is also how one ends that was told to go. A result is never taken from an exit code alone: a
  // coordinator whose words are lost has a successor, which finds the verdict in the ledger.
  if (ended.exit_code == 0 && !(words.report && words.report->verdict && words.error.empty())) {
    return std::nullopt;
  }
  CoordinatorVerdict verdict;
  if (words.report && words.report->verdict) verdict = OfReport(*words.report->verdict);
  if (words.report) report = std::move(words.report);
  verdict.succeeded = ended.exit_code == 0;
  if (verdict.message.empty() || not_published) verdict.message = words.error;
  if (verdict.succeeded) {
    verdict.reason = ReasonOfSuccess(verdict.reason);
  } else if (not_published) {
    verdict.reason = Reason("OutputNotPublished");
  } else if (ended.exit_code == 2) {
    verdict.reason = Reason("CoordinatorCannotStart");
    if (verdict.message.empty()) verdict.message = "the coordinator cannot start: see its log";
  } else if (verdict.reason.empty()) {
    verdict.reason = Reason("JobFailed");
  }
  return verdict;
}

void Fail(Draft& draft, Reason reason, const std::string& message) {
  draft.Set("FailureTarget", Truth::kTrue, reason, message);
}

void JudgeDeadlines(Draft& draft) {
  const JobStatus& status = draft.status;
  // A success that is durable wins, however long its publishing takes.
  if (!status.start_time || draft.suspend || draft.finalizing) return;
  if (draft.spec.active_deadline) {
    const WallTime end = *status.start_time + *draft.spec.active_deadline;
    if (draft.now >= end) {
      return Fail(draft, "DeadlineExceeded",
                  fmt::format("the job was active for longer than activeDeadlineSeconds ({})",
                              HumanDuration(*draft.spec.active_deadline)));
    }
    draft.Wake(end);
  }
  if (draft.spec.startup_deadline && !status.ready_time && draft.spec.node_count > 0) {
    const WallTime end = *status.start_time + *draft.spec.startup_deadline;
    if (draft.now >= end) {
      const Condition* const ready = draft.before.Find("NodesReady");
      return Fail(draft, "StartupDeadlineExceeded",
                  fmt::format("no node was ready after {}: {}: {}",
                              HumanDuration(*draft.spec.startup_deadline),
                              ready == nullptr ? "" : ready->reason,
                              ready == nullptr ? "" : ready->message));
    }
    draft.Wake(end);
  }
}

void JudgeRestarts(Draft& draft) {
  const JobStatus& status = draft.status;
  // What the job itself has found counts, so its default is judged when the coordinator says that.
  const bool known = draft.report || draft.spec.node_restart_limit;
  const int64_t limit = api::NodeRestartLimit(draft.spec, status.highest_node_count,
                                              draft.report ? draft.report->FoundToEndNodes() : 0);
  if (known && status.nodes.against_limit > limit) {
    std::string last;
    for (const EventToEmit& event : draft.plan.events) {
      if (event.reason == "NodeFailed") last = "; the last one: " + event.message;
    }
    return Fail(draft, "NodeRestartLimitExceeded",
                fmt::format("nodes failed {} while no other node worked, nodeRestartLimit is {}{}",
                            CountOf(status.nodes.against_limit, "time"), limit, last));
  }
  if (status.coordinator.fruitless > draft.spec.coordinator.restart_limit) {
    const PodDigest* const pod = draft.groups.coordinator.Highest();
    std::string last;
    if (pod != nullptr && pod->main.ended) {
      const LastWords words = ParseLastWords(pod->main.ended->message);
      last = fmt::format("; it ended last with {}, exit code {}{}{}", pod->main.ended->reason,
                         pod->main.ended->exit_code, words.error.empty() ? "" : ": ", words.error);
    }
    Fail(draft, "CoordinatorRestartLimitExceeded",
         fmt::format("the coordinator was restarted {} without a new result, "
                     "coordinator.restartLimit is {}{}{}",
                     CountOf(status.coordinator.fruitless, "time"),
                     draft.spec.coordinator.restart_limit, last,
                     draft.finalizing ? "; every result is kept: fix the output's folder, and a "
                                        "job with output.ifExists: Resume publishes them"
                                      : ""));
  }
}

// Of a job that would rather not be than wait: it has no pods yet, and gets none. One that stands
// still asks for nothing.
void JudgeOutput(Draft& draft) {
  if (draft.spec.on_output_taken != api::OnOutputTaken::kFail) return;
  if (draft.status.start_time || draft.suspend || draft.finalizing) return;
  const Rival* const rival = WhoHasTheOutput(draft);
  if (rival == nullptr) return;
  Fail(draft, "OutputTaken",
       OutputTakenBy(draft, *rival) +
           ", and onOutputTaken is Fail: delete one of them, or give this one another output.path; "
           "without onOutputTaken, one that is created anew waits for the end of the other");
}

void Complete(Draft& draft) {
  const int64_t failed = draft.report ? draft.report->failed : 0;
  std::string message = draft.verdict->message;
  if (draft.report && message.empty()) {
    message = failed == 0 ? CountOf(draft.report->succeeded, "mini-batch") + " succeeded"
                          : fmt::format("{} of {} failed, within the thresholds", failed,
                                        CountOf(draft.report->Settled(), "mini-batch"));
  }
  if (failed > 0) {
    draft.Set("Complete", Truth::kTrue, kCompletedWithFailures, message);
  } else {
    draft.Set("Complete", Truth::kTrue, Said{draft.verdict->reason}, message);
  }
  // Whatever it has lost.
  draft.Set("FailureTarget", Truth::kFalse, kCompleted, "the job has succeeded");
  draft.Set("Failed", Truth::kFalse, kCompleted, "the job has succeeded");
  draft.status.completion_time = draft.now;
}

bool AnyMayRun(Draft& draft) {
  bool any = false;
  for (const PodDigest& pod : draft.seen.pods) {
    if (!MayRun(pod, draft.now)) continue;
    any = true;
    if (pod.deletion) draft.Wake(GivenUpAt(pod));
  }
  return any;
}

void DeleteCoordinators(Draft& draft, const std::string& reason) {
  for (const PodDigest* pod : draft.groups.coordinator.pods) {
    if (pod->Live()) draft.DeletePod(*pod, reason);
  }
}

// Deletes one of the objects that docs/operator.md lists. False: it is not known to be gone yet.
bool DeleteChild(Draft& draft, FactKind kind, const char* resource, const std::string& name,
                 const char* why = kTtlPassed) {
  const FactKey key{kind, name};
  draft.plan.needs.push_back({key, kGoneLasts});
  const auto found = draft.seen.facts.find(key);
  if (found == draft.seen.facts.end()) {
    draft.plan.waits_for_needs = true;
    return false;
  }
  const Fact& fact = found->second;
  if (fact.state == Fact::State::kUnreadable) {
    draft.WakeIn(kGoneLasts);
    return false;
  }
  if (fact.state == Fact::State::kAbsent || fact.owner_uid != draft.identity.uid) return true;
  if (draft.RefusedLately(std::string(resource) + "/" + name)) return false;
  Action action{Action::Kind::kDelete, why};
  action.resource = resource;
  action.name = name;
  action.uid = fact.uid;
  draft.plan.actions.push_back(std::move(action));
  draft.WakeIn(kLookWhetherGone);
  return false;
}

// The job stays, and what it has written. What is gone is looked for once, not each time that an
// operator starts: the status says so.
void CleanUp(Draft& draft) {
  if (draft.status.cleanup_time) return;
  for (const PodDigest& pod : draft.seen.pods) {
    if (pod.Terminal() && !pod.deletion) draft.DeletePod(pod, kTtlPassed);
  }
  if (!draft.seen.pods.empty()) return;  // what they mount goes after them
  const JobIdentity& job = draft.identity;
  bool gone = DeleteChild(draft, FactKind::kSecret, "secrets", AccessSecretName(job));
  gone &= DeleteChild(draft, FactKind::kService, "services", ServiceName(job));
  gone &= DeleteChild(draft, FactKind::kConfigMap, "configmaps", CodeSnapshotName(job));
  if (draft.options.network_policies) {
    gone &= DeleteChild(draft, FactKind::kNetworkPolicy, "networkpolicies", ServiceName(job));
  }
  if (gone) draft.status.cleanup_time = draft.now;
}

}  // namespace

void FindVerdict(Draft& draft) {
  const CoordinatorView& view = draft.seen.coordinator;
  const PodDigest* const live = draft.groups.coordinator.Live();
  if (view.report) draft.report = view.report;
  for (const PodDigest* pod : draft.groups.coordinator.pods) {
    if (!pod->main.ended) continue;
    if (auto verdict = OfLastWords(*pod->main.ended, draft.report)) draft.verdict = verdict;
  }
  if (!draft.verdict && view.report && view.report->Ended()) {
    draft.verdict = OfReport(*view.report->verdict);
  }
  const bool works = live != nullptr && view.report && view.pod_uid == live->uid &&
                     view.report->pending + view.report->running > 0;
  draft.finalizing = draft.report && draft.report->state == "Finalizing";
  // A coordinator that died while it published has the same to do again.
  if (draft.before.phase == "Finalizing" && !works) draft.finalizing = true;
}

void JudgeJob(Draft& draft) {
  if (draft.verdict && draft.verdict->succeeded) return Complete(draft);
  if (draft.status.Is("FailureTarget")) return;
  if (const auto& verdict = draft.verdict) {
    return draft.Set("FailureTarget", Truth::kTrue, Said{verdict->reason}, verdict->message);
  }
  if (draft.spec.cancel && !draft.finalizing) {
    return Fail(draft, "Canceled", "spec.cancel is true");
  }
  JudgeDeadlines(draft);
  if (!draft.status.Is("FailureTarget")) JudgeRestarts(draft);
  if (!draft.status.Is("FailureTarget")) JudgeOutput(draft);
}

void EndFailed(Draft& draft) {
  const Condition target = *draft.status.Find("FailureTarget");
  draft.DeleteNodes("the job has failed: " + target.reason);
  const PodDigest* const coordinator = draft.groups.coordinator.Live();
  const WallTime patience = target.since + kCoordinatorGrace;
  const bool listens = coordinator != nullptr && coordinator->main.running &&
                       !coordinator->ip.empty() && !draft.verdict && draft.now < patience;
  if (listens) {
    TalkToCoordinator(draft);
    AskForProgress(draft);
    draft.Wake(patience);
  } else {
    DeleteCoordinators(draft, "the job has failed: " + target.reason);
  }
  draft.Set("NodesReady", Truth::kFalse, "Failing", target.message);
  draft.Set("Suspended", Truth::kFalse, "Failing", "");
  if (AnyMayRun(draft)) {
    draft.Set("Reconciling", Truth::kTrue, "Failing", "waiting for the pods to end");
    return;
  }
  const Said why{target.reason};
  draft.Set("Failed", Truth::kTrue, why, target.message);
  draft.Set("Finished", Truth::kTrue, why, target.message);
  draft.Set("Complete", Truth::kFalse, "Failed", "");
  draft.Set("Reconciling", Truth::kFalse, "Failed", kIsOver);
  draft.Set("Stalled", Truth::kTrue, why, target.message);
  draft.status.completion_time = draft.now;
}

void DropBudget(Draft& draft) {
  if (!draft.seen.job.parsed.ok() || draft.spec.disruption != api::Disruption::kBudget) return;
  if (draft.groups.coordinator.Live() != nullptr) return;
  const std::string name = ServiceName(draft.identity);
  const auto fact = draft.seen.facts.find({FactKind::kDisruptionBudget, name});
  // An operator without the right has made none.
  const bool refused = fact != draft.seen.facts.end() && !fact->second.passing &&
                       fact->second.state == Fact::State::kUnreadable;
  if (refused) return;
  DeleteChild(draft, FactKind::kDisruptionBudget, "poddisruptionbudgets", name,
              "there is no coordinator to be kept");
}

void KeepEnded(Draft& draft) {
  JobStatus& status = draft.status;
  const bool complete = status.Is("Complete");
  const Reason reason = complete ? kCompleted : Reason("Failed");
  draft.DeleteNodes("the job is over");
  const WallTime end = status.completion_time.value_or(draft.now);
  // A coordinator that succeeded ends by itself; its pod keeps the log.
  if (complete && draft.now < end + kCoordinatorGrace) {
    if (draft.groups.coordinator.Live() != nullptr) draft.Wake(end + kCoordinatorGrace);
  } else {
    DeleteCoordinators(draft, "the job is over");
  }
  DropBudget(draft);
  // One condition for both ends: `kubectl wait` hears of one only.
  const Condition last = *status.Find(complete ? "Complete" : "Failed");
  draft.Set("Finished", Truth::kTrue, Said{last.reason}, last.message);
  draft.Set("NodesReady", Truth::kFalse, reason, kIsOver);
  draft.Set("Suspended", Truth::kFalse, reason, kIsOver);
  draft.Set("Reconciling", Truth::kFalse, reason, kIsOver);
  if (complete) draft.Set("Stalled", Truth::kFalse, reason, kIsOver);

  if (!draft.seen.job.parsed.ok() || !draft.spec.ttl_after_finished) return;
  const WallTime gone = end + *draft.spec.ttl_after_finished;
  if (draft.now < gone) return draft.Wake(gone);
  if (!draft.spec.delete_after_finished) return CleanUp(draft);
  // All of its objects are the garbage collector's then.
  Action action{Action::Kind::kDelete, kTtlPassed};
  action.resource = "parallelrunjobs";
  action.name = draft.identity.name;
  action.uid = draft.identity.uid;
  draft.plan.actions.push_back(std::move(action));
}

}  // namespace parallelrun::operators
