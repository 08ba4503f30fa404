// The pods of a running job, and what its coordinator is told and asked.
#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "api/fields/told.h"

#include "operator/plan/draft.h"

namespace parallelrun::operators {
namespace {

using nlohmann::json;
using reasons::Reason;

constexpr Duration kRetryCreate = seconds(5);
// While something seems to be missing.
constexpr Duration kChildrenLastInDoubt = seconds(30);
constexpr Duration kLookAtProgress = seconds(5);
constexpr Duration kDrainGrace = seconds(120);
constexpr Duration kCoordinatorPause = seconds(10);
// A coordinator takes at most 1,000 of them, and 64 KiB.
constexpr size_t kMostPodEnds = 500;
constexpr size_t kLongestReason = 40;
// In one plan: a pod as JSON takes 25 kB, a job may want thousands, and many jobs are planned at
// the same time.
constexpr int kMostCreates = 16;

Action Create(json object, const char* resource, std::string reason) {
  Action action{Action::Kind::kCreate, std::move(reason)};
  action.resource = resource;
  action.name = object["metadata"]["name"];
  action.object = std::move(object);
  return action;
}

// In every plan, in front of the pods: the reconciler knows when it is worth a look.
void EnsureAccess(Draft& draft) {
  Action action{Action::Kind::kEnsureAccess, "pods need their configuration"};
  action.resource = "secrets";
  action.name = AccessSecretName(draft.identity);
  action.access.job = draft.seen.job.parsed.job;
  action.access.code_digest = draft.status.effective.code_digest;
  action.access.nodes = static_cast<uint32_t>(draft.spec.node_count);
  action.access.highest_nodes = static_cast<uint32_t>(draft.status.highest_node_count);
  action.access.processes = static_cast<uint32_t>(draft.status.effective.process_count_per_node);
  action.access.coordinator_port = draft.CoordinatorPort();
  draft.plan.actions.push_back(std::move(action));
}

bool IsRegistered(const Draft& draft, int32_t index) {
  if (!draft.report) return false;
  const std::vector<int32_t>& registered = draft.report->registered;
  return std::find(registered.begin(), registered.end(), index) != registered.end();
}

// A pod is to be made, or runs and does not reach the coordinator.
bool InDoubt(const Draft& draft) {
  if (draft.groups.coordinator.Live() == nullptr) return true;
  if (draft.finalizing) return false;
  for (int32_t index = 0; index < draft.spec.node_count; ++index) {
    const auto group = draft.groups.nodes.find(index);
    const PodDigest* const live =
        group == draft.groups.nodes.end() ? nullptr : group->second.Live();
    if (live == nullptr || (live->ready && !IsRegistered(draft, index))) return true;
  }
  return false;
}

// An object of which the job has one, as `wanted` says.
void KeepObject(Draft& draft, FactKind kind, const char* resource, json wanted) {
  const std::string name = wanted["metadata"]["name"];
  const auto create = [&] {
    if (draft.RefusedLately(std::string(resource) + "/" + name)) return;
    draft.plan.actions.push_back(Create(std::move(wanted), resource, "the job has none"));
  };
  if (draft.FirstVisit() && !draft.seen.facts.contains({kind, name})) return create();
  const bool in_doubt = InDoubt(draft);
  const Duration max_age = in_doubt ? kChildrenLastInDoubt : kChildrenLast;
  const Fact* const fact = draft.Know(kind, name, max_age, false);
  if (in_doubt) draft.WakeIn(max_age);
  if (fact == nullptr || fact->state == Fact::State::kUnreadable) return;
  if (fact->state == Fact::State::kAbsent) return create();
  if (fact->owner_uid != draft.identity.uid) {
    draft.plan.needs.push_back({{kind, name}, seconds(4)});  // it may go away
    draft.WakeIn(seconds(5));
    draft.obstacles.push_back(
        {100, "NameTaken",
         fmt::format("{} {} is there and is not this job's: delete it", resource, name), true});
    return;
  }
  if (fact->content == wanted["metadata"]["annotations"][kContentAnnotation]) return;
  if (draft.RefusedLately(std::string(resource) + "/" + name)) return;
  Action action{Action::Kind::kApply, "it is not as it should be"};
  action.resource = resource;
  action.name = name;
  action.object = std::move(wanted);
  draft.plan.actions.push_back(std::move(action));
}

void KeepBudget(Draft& draft) {
  if (draft.spec.disruption != api::Disruption::kBudget) return;
  const json wanted = CoordinatorBudget(draft.Build());
  KeepObject(draft, FactKind::kDisruptionBudget, "poddisruptionbudgets", wanted);
  const auto fact =
      draft.seen.facts.find({FactKind::kDisruptionBudget, ServiceName(draft.identity)});
  const bool refused = fact != draft.seen.facts.end() && !fact->second.passing &&
                       fact->second.state == Fact::State::kUnreadable;
  if (!refused) return;
  draft.obstacles.push_back({57, "Forbidden",
                             fact->second.error +
                                 ": a drain does not wait for this job; give the operator the "
                                 "right (jobs.disruptionBudgets of the chart)",
                             false});
}

// How many pods may be created now: after a refusal one, as a probe, and not at once.
class Creates {
 public:
  explicit Creates(Draft& draft) : draft_(draft) {
    for (const ApplyFailure& failure : draft.seen.failures) {
      if (!failure.object.starts_with("pods/") || failure.at + kFailuresLast < draft.now) continue;
      left_ = 1;
      probes_ = true;
      const WallTime again = failure.at + kRetryCreate;
      if (draft.now >= again) continue;
      left_ = 0;
      draft.Wake(again);
      return;
    }
  }

  bool Full() const { return left_ == 0; }
  void Pod(json pod, std::string reason) {
    if (Full()) return;
    if (--left_ == 0 && !probes_) draft_.WakeIn(milliseconds(1));  // for the rest
    pods_.push_back(Create(std::move(pod), "pods", std::move(reason)));
  }

  // All together and behind everything else, so that they can go at the same time.
  void Finish() {
    for (Action& pod : pods_) draft_.plan.actions.push_back(std::move(pod));
  }

 private:
  Draft& draft_;
  std::vector<Action> pods_;
  int left_ = kMostCreates;
  bool probes_ = false;
};

// The incarnation that the Service is to select; the coordinator's pod is made if there is none.
int64_t KeepCoordinator(Draft& draft, Creates& creates) {
  const PodGroup& group = draft.groups.coordinator;
  const PodDigest* const live = group.Live();
  for (const PodDigest* pod : group.pods) {
    if (pod->Live() && pod != live) draft.DeletePod(*pod, "a later coordinator is there");
  }
  if (live != nullptr) {
    if (!draft.status.start_time) {
      draft.status.start_time = draft.now;
      // With the start, so that no write follows which tells nothing else.
      draft.status.coordinator.incarnation = live->incarnation;
      draft.status.coordinator.container_restarts = live->main.restarts;
    }
    return live->incarnation;
  }
  const int64_t next = NextIncarnation(
      group, std::max(draft.status.highest_incarnation, draft.status.coordinator.incarnation));
  const PodDigest* const last = group.Highest();
  if (last != nullptr) {
    const PodOutcome end = EndOf(*last);
    // One that its kubelet turned away; one that ran and was taken away is replaced at once.
    const bool refused = NobodysFault(end.cause) && last->Terminal() && !last->main.ended;
    const bool paused = end.cause == EndCause::kJob || end.cause == EndCause::kDisk ||
                        end.cause == EndCause::kPressure;
    WallTime again{};
    if (paused && end.at != WallTime{}) {
      again = end.at + kCoordinatorPause;
    } else if (refused || paused) {
      again = last->created + kCoordinatorPause;
    }
    if (draft.now < again) return draft.Wake(again), last->incarnation;
  }
  if (!draft.status.start_time) draft.status.start_time = draft.now;
  creates.Pod(CoordinatorPod(draft.Build(), next),
              last == nullptr ? "the job starts" : "its predecessor ended");
  return next;
}

// Whether no other node can come to do anything: all that is left runs, and where the nodes are
// that have come, all of it could run once more, be it tried again, a second time or for a node
// that is lost. A mini-batch that is split may want more of them.
bool OthersSuffice(const Draft& draft) {
  const PodDigest* const coordinator = draft.groups.coordinator.Live();
  const CoordinatorView& view = draft.seen.coordinator;
  if (coordinator == nullptr || !view.report || view.pod_uid != coordinator->uid) return false;
  const Report& report = *view.report;
  const bool at_the_tail = report.state == "Running" && report.listing_done && report.pending == 0;
  if (!at_the_tail || report.running == 0 || draft.spec.isolate_failures) return false;
  int64_t free = 0;
  for (const ReportNode& node : report.nodes) {
    const auto group = draft.groups.nodes.find(node.index);
    const PodDigest* const live =
        group == draft.groups.nodes.end() ? nullptr : group->second.Live();
    const bool can_work = node.registered && !node.gave_up && node.index < draft.spec.node_count &&
                          live != nullptr && live->ready;
    if (can_work) free += std::max<int64_t>(0, node.processes - node.held);
  }
  return free >= report.running;
}

// One that is on a host stays: it may be at init(), and nobody knows whether shutdown() is owed.
bool IsOnAHost(const PodDigest* live) {
  return live != nullptr && (live->phase != PodPhase::kPending || !live->node_name.empty());
}

void KeepNode(Draft& draft, int32_t index, Creates& creates) {
  static const PodGroup kNone;
  const auto found = draft.groups.nodes.find(index);
  const PodGroup& group = found == draft.groups.nodes.end() ? kNone : found->second;
  const PodDigest* const live = group.Live();
  for (const PodDigest* pod : group.pods) {
    if (pod->Live() && pod != live) draft.DeletePod(*pod, "a later pod of this node is there");
  }
  if (live != nullptr) return;
  const Succession next = SuccessionOf(group);
  if (draft.now < next.not_before) {
    draft.Wake(next.not_before);
    const PodOutcome end = EndOf(*group.Highest());
    // Nothing is wrong.
    if (end.cause == EndCause::kFinished || end.cause == EndCause::kDrained) return;
    const bool taken = NobodysFault(end.cause);
    const bool warning = !taken || end.cause == EndCause::kPressure ||
                         (end.cause == EndCause::kRefused && next.setbacks >= kSetbacksToWarn);
    draft.obstacles.push_back(
        {taken ? 14 : 15, taken ? Reason("NodeDisrupted") : Reason("NodeBackOff"),
         fmt::format("node {} {} ({}) and is made again at {}{}", index,
                     taken ? "was taken away" : "ended", end.message, Rfc3339(next.not_before),
                     draft.OthersWork(index) ? "; the other nodes go on with its work" : ""),
         false, warning});
    return;
  }
  if (creates.Full()) return;
  creates.Pod(WorkerPod(draft.Build(), index,
                        {NextIncarnation(group, draft.status.highest_incarnation), next.failures,
                         next.failed_hosts, next.setbacks}),
              group.pods.empty() ? "the job wants this node" : "its predecessor ended");
}

// A node above the node count: the coordinator has it hand back what it holds, then it goes.
void RetireNode(Draft& draft, const PodDigest& pod) {
  const CoordinatorView& view = draft.seen.coordinator;
  const PodDigest* const coordinator = draft.groups.coordinator.Live();
  const std::string reason = fmt::format("nodeCount is {}", draft.spec.node_count);
  if (!pod.main.running || coordinator == nullptr || !coordinator->ready) {
    return draft.DeletePod(pod, reason + "; it holds nothing");
  }
  const bool told = view.pod_uid == coordinator->uid && view.acknowledged &&
                    view.acknowledged->value("nodeCount", -1) == draft.spec.node_count;
  if (!told) {
    if (!view.error.empty() && view.pulled + kDrainGrace < draft.now) {
      draft.DeletePod(pod, reason + "; the coordinator cannot be asked");
    }
    return draft.WakeIn(seconds(5));
  }
  if (view.report && view.pulled > view.acknowledged_at && !IsRegistered(draft, pod.index)) {
    return draft.DeletePod(pod, reason + "; it has handed back its work");
  }
  const WallTime patience = view.acknowledged_at + kDrainGrace;
  if (draft.now >= patience) return draft.DeletePod(pod, reason + "; it took too long to leave");
  draft.Wake(patience);
}

void KeepNodes(Draft& draft, Creates& creates) {
  const int32_t count = draft.spec.node_count;
  const auto& nodes = draft.groups.nodes;
  const bool suffice = OthersSuffice(draft);
  for (int32_t index = 0; index < count; ++index) {
    const auto group = nodes.find(index);
    const PodDigest* const live = group == nodes.end() ? nullptr : group->second.Live();
    if (!suffice || IsOnAHost(live)) {
      KeepNode(draft, index, creates);
      continue;
    }
    // An autoscaler would bring up a host for it.
    if (live != nullptr) draft.DeletePod(*live, "no mini-batch is left for it");
    ++draft.unneeded;
  }
  for (auto above = nodes.lower_bound(count); above != nodes.end(); ++above) {
    for (const PodDigest* pod : above->second.pods) {
      if (pod->Live()) RetireNode(draft, *pod);
    }
  }
}

// The newest first: older ones were told when they were the newest.
json PodEnds(const Draft& draft) {
  const auto ended_at = [](const PodDigest& pod) {
    return pod.main.ended ? pod.main.ended->finished : pod.created;
  };
  std::vector<std::pair<const PodDigest*, PodOutcome>> all;
  for (const auto& [index, group] : draft.groups.nodes) {
    const PodDigest* const pod = group.Tombstone();
    if (pod == nullptr) continue;
    PodOutcome end = EndOf(*pod);
    if (end.cause == EndCause::kFinished || end.cause == EndCause::kDrained) continue;
    all.emplace_back(pod, std::move(end));
  }
  std::stable_sort(all.begin(), all.end(), [&](const auto& a, const auto& b) {
    return ended_at(*a.first) > ended_at(*b.first);
  });
  if (all.size() > kMostPodEnds) all.resize(kMostPodEnds);
  json ends = json::array();
  for (const auto& [pod, end] : all) {
    ends.push_back({{"node", pod->index},
                    {"incarnation", pod->incarnation},
                    {"reason", Shortened(end.reason, kLongestReason)},
                    {"exitCode", end.exit_code}});
  }
  return ends;
}

}  // namespace

void RunPods(Draft& draft) {
  EnsureAccess(draft);
  if (!draft.spec.state.claim_template.is_null()) {
    KeepObject(draft, FactKind::kClaim, "persistentvolumeclaims", StateClaim(draft.Build()));
  }
  Creates creates(draft);
  const int64_t incarnation = KeepCoordinator(draft, creates);
  KeepObject(draft, FactKind::kService, "services", CoordinatorService(draft.Build(), incarnation));
  if (draft.options.network_policies) {
    KeepObject(draft, FactKind::kNetworkPolicy, "networkpolicies",
               CoordinatorNetworkPolicy(draft.Build()));
  }
  KeepBudget(draft);
  if (draft.finalizing) {
    draft.DeleteNodes("every mini-batch is settled");
  } else {
    KeepNodes(draft, creates);
  }
  creates.Finish();
}

json ControlBody(const Draft& draft) {
  json body = api::fields::FieldsForRunningJob(draft.spec);
  body["generation"] = draft.seen.job.generation;
  body["drain"] = false;
  body["cancel"] = draft.status.Is("FailureTarget");
  body["podEnds"] = PodEnds(draft);
  return body;
}

void TalkToCoordinator(Draft& draft) {
  const PodDigest* const pod = draft.groups.coordinator.Live();
  if (pod == nullptr || !pod->main.running || pod->ip.empty()) return;
  const CoordinatorView& view = draft.seen.coordinator;
  const bool same_pod = view.pod_uid == pod->uid;
  // Whoever reports serves. A kubelet that has just been started may ask its probes a minute late,
  // and the nodes that ended meanwhile would hold their mini-batches for as long.
  if (!pod->ready && !(same_pod && view.report)) return;
  json body = ControlBody(draft);
  const bool told = same_pod && view.acknowledged && *view.acknowledged == body;
  // A coordinator that was restarted in its pod has forgotten.
  const bool forgotten = told && view.report && view.pulled > view.acknowledged_at &&
                         view.report->control_generation < draft.seen.job.generation;
  if (told && !forgotten) return;
  Action action{Action::Kind::kControl,
                forgotten ? "the coordinator was restarted" : "the coordinator does not know it"};
  action.resource = "pods";
  action.name = pod->name;
  action.uid = pod->uid;
  action.address = pod->ip;
  action.object = std::move(body);
  draft.plan.actions.push_back(std::move(action));
}

void AskForProgress(Draft& draft) {
  const PodDigest* const pod = draft.groups.coordinator.Live();
  if (pod == nullptr || !pod->main.running || pod->ip.empty()) return;
  Duration pause = seconds(1);
  // A long job does not change much in a second.
  if (draft.report && draft.report->state == "Running" && draft.report->seconds_remaining) {
    pause = std::clamp<Duration>(seconds(*draft.report->seconds_remaining) / 50, seconds(1),
                                 seconds(5));
  }
  draft.plan.pull = PullRequest{pod->uid, pod->ip, draft.CoordinatorPort(), pause};
  draft.WakeIn(kLookAtProgress);  // what cannot wait plans the job by itself
}

}  // namespace parallelrun::operators
