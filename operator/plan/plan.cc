#include "operator/plan/plan.h"

#include <algorithm>

#include "operator/plan/draft.h"
#include "reasons/entries.h"

namespace parallelrun::operators {
namespace {

using reasons::Reason;
using reasons::Said;

constexpr Duration kAbsentAgain = seconds(4);
constexpr Duration kNamespaceAgain = seconds(60);
constexpr Duration kRefusedAgain = seconds(5);

// A queue that admits jobs marks those that may run.
constexpr char kQueueLabel[] = "kueue.x-k8s.io/queue-name";
constexpr char kAdmitted[] = "parallelrun.dev/admitted";

// Kueue admits what it makes a Workload of, and of a ParallelRunJob nobody makes one yet.
std::string QueueWords(const api::JobMetadata& metadata) {
  return "waits in queue " + metadata.labels.at(kQueueLabel) +
         ", and ParallelRun does not speak to Kueue yet: nothing admits this job by itself. "
         "Remove its label " +
         kQueueLabel + ", and it starts; or have whatever runs the queue set the annotation " +
         kAdmitted + ": \"true\"";
}

bool WaitsInQueue(const api::JobMetadata& metadata) {
  if (!metadata.labels.contains(kQueueLabel)) return false;
  const auto admitted = metadata.annotations.find(kAdmitted);
  return admitted == metadata.annotations.end() || admitted->second != "true";
}

void SetAllConditions(Draft& draft) {
  for (const char* type : kConditionTypes) {
    if (draft.status.Find(type) != nullptr) continue;
    const std::string_view name = type;
    const bool open = name == "Accepted" || name == "NodesReady";
    draft.Set(name, open ? Truth::kUnknown : Truth::kFalse, "Pending", "");
  }
}

// Why a job cannot be read, in one message.
std::string ProblemsText(const api::Problems& problems) {
  std::string text;
  for (const api::Problem& problem : problems) {
    if (problem.severity != api::Problem::Severity::kError) continue;
    if (!text.empty()) text += "; ";
    text += problem.field + ": " + problem.what;
    if (!problem.mend.empty()) text += ": " + problem.mend;
  }
  return text;
}

// False: the job cannot be read. Its pods, if it has any, are left as they are.
bool Accept(Draft& draft) {
  const api::ParsedJob& parsed = draft.seen.job.parsed;
  if (!parsed.ok()) {
    const std::string text = ProblemsText(parsed.problems);
    draft.Set("Accepted", Truth::kFalse, "Invalid", text);
    draft.Set("Stalled", Truth::kTrue, "Invalid", text);
    draft.Set("Reconciling", Truth::kFalse, "Invalid", "");
    // Nothing of it was made, and nothing will be: who waits for its end waits no longer.
    if (draft.seen.pods.empty()) draft.Set("Finished", Truth::kTrue, "Invalid", text);
    return false;
  }
  draft.Set("Finished", Truth::kFalse, "NotFinished", "");  // it may be one that was mended
  if (!draft.before.Is("Accepted")) {
    for (const api::Problem& problem : parsed.problems) {
      draft.Event(true, "SpecWarning", problem.field + ": " + problem.what + ": " + problem.mend);
    }
  }
  draft.Set("Accepted", Truth::kTrue, "Valid", "");
  return true;
}

void ResetClock(Draft& draft) {
  JobStatus& status = draft.status;
  status.start_time.reset();
  status.ready_time.reset();
  // The next coordinator follows none that failed.
  if (draft.groups.coordinator.Live() != nullptr) return;
  status.highest_incarnation = std::max(status.highest_incarnation, status.coordinator.incarnation);
  status.coordinator.incarnation = 0;
  status.coordinator.container_restarts = 0;
}

// Stops the clock and the pods: first the nodes, which hand back what they hold, then the
// coordinator.
void Suspend(Draft& draft, Reason reason, const std::string& message) {
  draft.DeleteNodes("the job is suspended");
  bool nodes_left = false;
  bool any_left = false;
  for (const PodDigest& pod : draft.seen.pods) {
    if (!MayRun(pod, draft.now)) continue;
    any_left = true;
    if (pod.role == PodRole::kNode) nodes_left = true;
    if (pod.deletion) draft.Wake(GivenUpAt(pod));
  }
  if (!nodes_left) {
    for (const PodDigest* pod : draft.groups.coordinator.pods) {
      if (pod->Live()) draft.DeletePod(*pod, "the job is suspended");
    }
  }
  const bool done = !any_left;
  draft.Set("Suspended", done ? Truth::kTrue : Truth::kFalse, done ? reason : Reason("Suspending"),
            done ? message : "waiting for the pods to end");
  draft.Set("Reconciling", done ? Truth::kFalse : Truth::kTrue,
            done ? reason : Reason("Suspending"), "");
  draft.Set("NodesReady", Truth::kFalse, reason, message);
  draft.Set("Stalled", Truth::kFalse, reason, message);
  if (done) ResetClock(draft);
  DropBudget(draft);
}

// The job goes with its namespace; in case it does not, another try now and then.
bool NamespaceEnds(Draft& draft) {
  for (const ApplyFailure& failure : draft.seen.failures) {
    const WallTime again = failure.at + kNamespaceAgain;
    if (failure.reason != kNamespaceTerminating || draft.now >= again) continue;
    draft.obstacles.push_back(
        {101, kNamespaceTerminating,
         "namespace " + draft.identity.name_space + " is being deleted, and the job with it", true,
         false});
    draft.Wake(again);
    return true;
  }
  return false;
}

void Run(Draft& draft) {
  if (draft.before.Is("Suspended") || draft.before.Find("Suspended") == nullptr ||
      draft.before.Find("Suspended")->reason == "Suspending") {
    ResetClock(draft);
  }
  draft.Set("Suspended", Truth::kFalse, "NotSuspended", "");
  if (!NamespaceEnds(draft) && (draft.finalizing || (PrepareStart(draft) && PrepareCode(draft)))) {
    RunPods(draft);
  }
  TalkToCoordinator(draft);
  AskForProgress(draft);
  FindUnreached(draft);
  FindObstacles(draft);
}

// A job that this operator cannot read, but that runs: its verdict counts all the same.
void FollowUnread(Draft& draft) {
  AskForProgress(draft);
  if (!draft.verdict) return;
  JudgeJob(draft);
  if (draft.status.Is("Complete")) return KeepEnded(draft);
  if (draft.status.Is("FailureTarget")) EndFailed(draft);
}

void Decide(Draft& draft) {
  const api::JobMetadata& metadata = draft.seen.job.parsed.job.metadata;
  FindVerdict(draft);
  if (draft.before.Over()) return KeepEnded(draft);
  if (!Accept(draft)) return FollowUnread(draft);
  draft.status.highest_node_count =
      std::max(draft.status.highest_node_count, draft.spec.node_count);
  const bool queued = WaitsInQueue(metadata);
  draft.suspend = (draft.spec.suspend || queued) && !draft.finalizing;
  CountEnds(draft, !draft.suspend && !draft.before.Is("FailureTarget"));
  JudgeJob(draft);
  if (draft.status.Is("Complete")) return KeepEnded(draft);
  if (draft.status.Is("FailureTarget")) return EndFailed(draft);
  if (draft.suspend) {
    return queued ? Suspend(draft, "Queued", QueueWords(metadata))
                  : Suspend(draft, "Suspended", "spec.suspend is true");
  }
  Run(draft);
}

}  // namespace

Plan MakePlan(const Observed& observed, const OperatorOptions& options, WallTime now) {
  Draft draft(observed, options, now);
  const api::JobSpec& spec = draft.spec;
  const bool foreign = !spec.managed_by.empty() && spec.managed_by != kControllerName;
  // What is being deleted is the garbage collector's.
  if (observed.job.deleting || foreign) return std::move(draft.plan);
  SetAllConditions(draft);
  Decide(draft);
  ShowStatus(draft);
  TellChanges(draft);
  DecideWrite(draft);
  return std::move(draft.plan);
}

std::vector<FactKey> MissingFacts(const Plan& plan, const Observed& observed, WallTime now) {
  std::vector<FactKey> missing;
  for (const Need& need : plan.needs) {
    if (std::find(missing.begin(), missing.end(), need.key) != missing.end()) continue;
    const auto fact = observed.facts.find(need.key);
    if (fact == observed.facts.end() || fact->second.read + need.max_age < now) {
      missing.push_back(need.key);
    }
  }
  return missing;
}

nlohmann::json StatusObject(const ObservedJob& job, const JobStatus& status) {
  return {{"apiVersion", api::kApiVersion},
          {"kind", api::kJobKind},
          {"metadata", {{"name", job.name}, {"namespace", job.name_space}}},
          {"status", ToJson(status)}};
}

Draft::Draft(const Observed& observed, const OperatorOptions& operator_options, WallTime at)
    : seen(observed),
      options(operator_options),
      now(at),
      spec(observed.job.parsed.job.spec),
      before(observed.job.status),
      identity{observed.job.name_space, observed.job.name, observed.job.uid, observed.job.created},
      groups(GroupPods(observed.pods)),
      status(plan.status) {
  status = before;
}

BuildContext Draft::Build() const {
  return {spec,
          identity,
          options,
          status.effective.runtime_image,
          CoordinatorPort(),
          status.effective.one_host};
}

uint16_t Draft::CoordinatorPort() const {
  const uint16_t fixed = status.effective.coordinator_port;
  return fixed != 0 ? fixed : options.coordinator_port;
}

void Draft::Set(std::string_view type, Truth truth, Reason reason, std::string_view message) {
  Set(type, truth, Said{reason}, message);
}

// Who reads a condition reads its message: without one of its own, what its reason means.
void Draft::Set(std::string_view type, Truth truth, const Said& reason, std::string_view message) {
  SetCondition(status, type, truth, reason.word,
               message.empty() ? reasons::Meaning(reason.word) : std::string(message),
               seen.job.generation, now);
}

void Draft::Wake(WallTime at) {
  if (!plan.wake || at < *plan.wake) plan.wake = at;
}

const Fact* Draft::Know(FactKind kind, const std::string& name, Duration max_age, bool required) {
  const FactKey key{kind, name};
  const auto found = seen.facts.find(key);
  const bool there = found != seen.facts.end();
  const bool absent = there && found->second.state != Fact::State::kPresent;
  plan.needs.push_back({key, absent ? kAbsentAgain : max_age});
  const bool events = kind == FactKind::kPodEvents || kind == FactKind::kClaimEvents;
  if (there && absent && !events) WakeIn(seconds(5));
  if (there) return &found->second;
  if (required) plan.waits_for_needs = true;
  return nullptr;
}

bool Draft::RefusedLately(const std::string& target) {
  for (const ApplyFailure& failure : seen.failures) {
    if (failure.object != target || now >= failure.at + kRefusedAgain) continue;
    Wake(failure.at + kRefusedAgain);
    return true;
  }
  return false;
}

bool Draft::OthersWork(int32_t index) const {
  if (!report) return false;
  return std::any_of(report->working.begin(), report->working.end(), [&](int32_t other) {
    const auto group = groups.nodes.find(other);
    if (other == index || other >= spec.node_count || group == groups.nodes.end()) return false;
    const PodDigest* const live = group->second.Live();
    return live != nullptr && live->failures == 0;
  });
}

void Draft::DeletePod(const PodDigest& pod, const std::string& reason) {
  // It may be gone before it is seen to go.
  status.highest_incarnation = std::max(status.highest_incarnation, pod.incarnation);
  Action action{Action::Kind::kDelete, reason};
  action.resource = "pods";
  action.name = pod.name;
  action.uid = pod.uid;
  plan.actions.push_back(std::move(action));
}

void Draft::DeleteNodes(const std::string& reason) {
  // One that has ended is kept until the status that was read holds what it counts for.
  const auto held = [this](const PodDigest& pod) {
    const std::vector<std::string>& names = before.counted;
    return before.Over() || std::find(names.begin(), names.end(), CountedName(pod)) != names.end();
  };
  for (const auto& [index, group] : groups.nodes) {
    for (const PodDigest* pod : group.pods) {
      if (pod->Live() || (pod->lingers && !pod->deletion && held(*pod))) DeletePod(*pod, reason);
    }
  }
}

void Draft::Event(bool warning, Reason reason, std::string_view message) {
  plan.events.push_back({warning, reason, Shortened(message, kMaxMessage)});
}

void Draft::Event(bool warning, Said reason, std::string_view message) {
  plan.events.push_back({warning, std::move(reason.word), Shortened(message, kMaxMessage)});
}

}  // namespace parallelrun::operators
