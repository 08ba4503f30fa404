// What pods that ended count for: each one once, whatever crashes in between. A pod that is counted
// stays as a tombstone until the status that was read holds it.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <set>

#include "operator/plan/draft.h"

namespace parallelrun::operators {
namespace {

void CountNode(Draft& draft, const PodDigest& pod, const PodOutcome& end) {
  NodeCounts& counts = draft.status.nodes;
  const std::string what = fmt::format("node {} ({}): {}", pod.index, pod.name, end.message);
  switch (end.cause) {
    case EndCause::kFinished:
    case EndCause::kDrained: return;
    case EndCause::kDisruption:
      ++counts.disruptions;
      return draft.Event(false, "NodeDisrupted", what);
    case EndCause::kRefused:
      ++counts.disruptions;
      return draft.Event(pod.setbacks + 1 >= kSetbacksToWarn, "NodeDisrupted", what);
    case EndCause::kPressure: ++counts.disruptions; return draft.Event(true, "NodeDisrupted", what);
    case EndCause::kMemory: ++counts.disruptions; return draft.Event(true, "NodeOutOfMemory", what);
    case EndCause::kDisk: ++counts.disruptions; return draft.Event(true, "NodeOutOfDisk", what);
    case EndCause::kJob: {
      ++counts.restarts;
      draft.plan.failed_nodes.push_back(end.reason);
      const bool others_work = draft.OthersWork(pod.index);
      if (!others_work) ++counts.against_limit;
      return draft.Event(true, "NodeFailed",
                         what + (others_work ? "; the other nodes go on with its work" : ""));
    }
  }
}

// By a disruption, or in order after a SIGTERM.
bool WasTakenAway(const PodGroup& group, int64_t incarnation) {
  for (const PodDigest* pod : group.pods) {
    if (pod->incarnation != incarnation) continue;
    if (pod->Live()) return false;
    const EndCause cause = EndOf(*pod).cause;
    return NobodysFault(cause) || cause == EndCause::kDrained;
  }
  return true;  // gone without a trace: somebody took it away
}

void CountCoordinator(Draft& draft, bool running) {
  CoordinatorStatus& counts = draft.status.coordinator;
  if (draft.report && draft.report->Settled() > counts.settled) {
    counts.settled = draft.report->Settled();
    counts.fruitless = 0;
  }
  const PodDigest* const pod = draft.groups.coordinator.Highest();
  // While the clock stands still, those in view are of the time before a suspension.
  if (pod == nullptr || !draft.before.start_time) return;
  if (pod->incarnation > counts.incarnation) {
    if (running && counts.incarnation > 0) {
      ++counts.restarts;
      if (!WasTakenAway(draft.groups.coordinator, counts.incarnation)) ++counts.fruitless;
    }
    counts.incarnation = pod->incarnation;
    counts.container_restarts = 0;
  }
  if (pod->incarnation != counts.incarnation) return;
  const int64_t more = pod->main.restarts - counts.container_restarts;
  if (more <= 0) return;
  counts.container_restarts = pod->main.restarts;
  if (!running) return;
  counts.restarts += more;
  counts.fruitless += more;
}

}  // namespace

void CountEnds(Draft& draft, bool running) {
  JobStatus& status = draft.status;
  const std::set<std::string> counted(status.counted.begin(), status.counted.end());
  const std::set<std::string> held(draft.before.counted.begin(), draft.before.counted.end());
  status.counted.clear();
  for (const auto& [index, group] : draft.groups.nodes) {
    for (const PodDigest* pod : group.pods) {
      // One that has run may vanish without an end, and is then not in view any more. One that has
      // not may be made again under its name, as after a create whose answer was lost.
      if (pod->main.running || !pod->Live()) {
        status.highest_incarnation = std::max(status.highest_incarnation, pod->incarnation);
      }
      if (pod->Live()) continue;
      const std::string name = CountedName(*pod);
      // What belongs to the time before a suspension or after the last mini-batch, or above the
      // node count, was our own doing.
      const bool counts =
          running && !draft.finalizing && index < draft.spec.node_count &&
          !(draft.before.start_time && pod->created < *draft.before.start_time - seconds(60));
      if (counts && !counted.contains(name)) CountNode(draft, *pod, EndOf(*pod));
      status.counted.push_back(name);
      if (!pod->Terminal() || pod->deletion || !held.contains(name)) continue;
      if (index >= draft.spec.node_count) {
        draft.DeletePod(*pod, "the job wants this node no more");
      } else if (pod->lingers && pod != group.Highest()) {
        draft.DeletePod(*pod, "its agent has ended, and only sidecars run");
      } else if (pod != group.Tombstone()) {
        draft.DeletePod(*pod, "a later pod of this node ended too");
      }
    }
  }
  for (const PodDigest* pod : draft.groups.coordinator.pods) {
    // One that runs is held by coordinator.incarnation once the clock runs.
    if (pod->Live() && (draft.before.start_time || !pod->main.running)) continue;
    status.highest_incarnation = std::max(status.highest_incarnation, pod->incarnation);
    if (pod->Terminal() && pod != draft.groups.coordinator.Highest() && !pod->deletion) {
      draft.DeletePod(*pod, "a later coordinator took over");
    }
  }
  CountCoordinator(draft, running);
}

}  // namespace parallelrun::operators
