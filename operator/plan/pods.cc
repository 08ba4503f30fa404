#include "operator/plan/pods.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

namespace parallelrun::operators {
namespace {

constexpr Duration kFirstBackOff = seconds(10);
constexpr Duration kLongestBackOff = seconds(600);
// After so long a life a failure is the first of its kind.
constexpr Duration kLongLife = seconds(600);
// A node that was told that the job is over: how long the coordinator may take to say so to us.
constexpr Duration kFinishedPause = seconds(30);
constexpr Duration kDeadMachine = seconds(30);
constexpr size_t kMostFailedHosts = 8;
// A host that is short of something is avoided at once, not when it has failed twice.
constexpr int32_t kShortHost = 2;

// A node that fails on ever more hosts forgets those where it failed least.
void NoteHost(const std::string& host, int32_t weight, std::map<std::string, int32_t>& hosts) {
  if (host.empty()) return;
  if (hosts.size() == kMostFailedHosts && !hosts.contains(host)) {
    hosts.erase(std::min_element(
        hosts.begin(), hosts.end(),
        [](const auto& one, const auto& other) { return one.second < other.second; }));
  }
  hosts[host] += weight;
}

// After so many ends in a row.
Duration BackOff(int32_t ends) {
  Duration pause = kFirstBackOff;
  for (int32_t i = 1; i < ends && pause < kLongestBackOff; ++i) pause *= 2;
  return std::min(pause, kLongestBackOff);
}

}  // namespace

const PodDigest* PodGroup::Live() const {
  const auto found =
      std::find_if(pods.rbegin(), pods.rend(), [](const PodDigest* pod) { return pod->Live(); });
  return found == pods.rend() ? nullptr : *found;
}

const PodDigest* PodGroup::Tombstone() const {
  const auto found = std::find_if(pods.rbegin(), pods.rend(),
                                  [](const PodDigest* pod) { return pod->Terminal(); });
  return found == pods.rend() ? nullptr : *found;
}

PodGroups GroupPods(const std::vector<PodDigest>& pods) {
  PodGroups groups;
  for (const PodDigest& pod : pods) {
    PodGroup& group =
        pod.role == PodRole::kCoordinator ? groups.coordinator : groups.nodes[pod.index];
    group.pods.push_back(&pod);
  }
  const auto sort = [](PodGroup& group) {
    std::sort(group.pods.begin(), group.pods.end(), [](const PodDigest* a, const PodDigest* b) {
      return a->incarnation < b->incarnation;
    });
  };
  sort(groups.coordinator);
  for (auto& [index, group] : groups.nodes) sort(group);
  return groups;
}

std::string CountedName(const PodDigest& node) {
  return fmt::format("{}-{}", node.index, node.incarnation);
}

int64_t NextIncarnation(const PodGroup& group, int64_t highest_used) {
  const PodDigest* const highest = group.Highest();
  return 1 + std::max(highest == nullptr ? 0 : highest->incarnation, highest_used);
}

Succession SuccessionOf(const PodGroup& group) {
  const PodDigest* const last = group.Highest();
  if (last == nullptr) return {};
  const PodOutcome end = EndOf(*last);
  const WallTime at = end.at == WallTime{} ? last->created : end.at;
  // At once, but a pod that is refused as soon as it is made is not made in a loop.
  const WallTime soon = last->created + kFirstBackOff;
  Succession next{{}, last->failures, last->failed_hosts, last->setbacks};
  switch (end.cause) {
    case EndCause::kFinished: next.not_before = at + kFinishedPause; return next;
    case EndCause::kDrained: return next;
    case EndCause::kDisruption: next.not_before = soon; return next;
    case EndCause::kRefused:
    case EndCause::kPressure:
    case EndCause::kMemory:
    case EndCause::kDisk:
    case EndCause::kJob: break;
  }
  if (at - last->created >= kLongLife) next = {};
  if (end.cause == EndCause::kRefused) {
    // The pause is that of the host: another one may have room at once.
    ++next.setbacks;
    NoteHost(last->node_name, 1, next.failed_hosts);
    const auto host = next.failed_hosts.find(last->node_name);
    const int32_t refusals = host == next.failed_hosts.end() ? next.setbacks : host->second;
    next.not_before = std::max(soon, refusals == 1 ? soon : at + BackOff(refusals));
    return next;
  }
  if (end.cause == EndCause::kPressure) {
    ++next.setbacks;
    NoteHost(last->node_name, kShortHost, next.failed_hosts);
    next.not_before = at + BackOff(next.setbacks);
    return next;
  }
  ++next.failures;
  if (end.cause == EndCause::kJob) NoteHost(last->node_name, 1, next.failed_hosts);
  next.not_before = at + BackOff(next.failures);
  return next;
}

bool MayRun(const PodDigest& pod, WallTime now) {
  if (pod.Terminal()) return false;
  return !pod.deletion || now < GivenUpAt(pod);
}

WallTime GivenUpAt(const PodDigest& pod) { return *pod.deletion + kDeadMachine; }

}  // namespace parallelrun::operators
