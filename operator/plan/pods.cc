#include "operator/plan/pods.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>

#include "reasons/reason.h"

namespace parallelrun::operators {
namespace {

using reasons::Reason;

constexpr Duration kFirstBackOff = seconds(10);
constexpr Duration kLongestBackOff = seconds(600);
// After so long a life a failure is the first of its kind.
constexpr Duration kLongLife = seconds(600);
// A node that was told that the job is over: how long the coordinator may take to say so to us.
constexpr Duration kFinishedPause = seconds(30);
constexpr Duration kDeadMachine = seconds(30);
constexpr size_t kMostFailedHosts = 8;

bool IsDisruption(const std::string& reason) {
  static constexpr std::array kReasons = {"Evicted",
                                          "Preempting",
                                          "NodeLost",
                                          "NodeShutdown",
                                          "Shutdown",
                                          "Terminated",
                                          "NodeAffinity",
                                          "UnexpectedAdmissionError",
                                          "UnexpectedPodStatus"};
  return reason.starts_with("OutOf") ||
         std::find(kReasons.begin(), kReasons.end(), reason) != kReasons.end();
}

// Names for the agent's exit codes (docs/coordinator-api.md).
Reason OfExitCode(int32_t code) {
  if (code == 1) return "AgentGaveUp";
  if (code == 2) return "AgentCannotStart";
  if (code == 4) return "AgentNoRoom";
  return code > 128 ? Reason("Killed") : Reason("Error");
}

std::string ReasonOf(const Ended& ended) {
  const bool says_more =
      ended.reason != "Error" && ended.reason != "Completed" && !ended.reason.empty();
  return says_more ? ended.reason : std::string(OfExitCode(ended.exit_code));
}

// A program in a pod that was told to go ends with 0, as one whose job is over; its last words tell
// which it was. Those of earlier releases end with 3.
bool WasToldToGo(const Ended& ended) {
  return ended.exit_code == 3 ||
         (ended.exit_code == 0 && !ParseLastWords(ended.message).error.empty());
}

std::string Words(const std::string& message) {
  const size_t last = message.find_last_not_of(" \n");
  return last == std::string::npos ? "" : ": " + message.substr(0, last + 1);
}

// What Kubernetes' word for a disruption means, where the pod says no more itself.
std::string Meaning(const std::string& reason) {
  if (reason == "EvictionByEvictionAPI") return ": it was evicted, as when its host is drained";
  if (reason == "DeletionByTaintManager") return ": its host is lost, or is not to run pods";
  if (reason == "DeletionByPodGC") return ": its host is gone";
  if (reason == "PreemptionByScheduler") return ": it made room for a pod of higher priority";
  if (reason == "TerminationByKubelet") return ": its host is short of a resource or shuts down";
  return "";
}

// A node that fails on ever more hosts forgets those where it failed least.
void NoteHost(const std::string& host, std::map<std::string, int32_t>& failed_hosts) {
  if (host.empty()) return;
  if (failed_hosts.size() == kMostFailedHosts && !failed_hosts.contains(host)) {
    failed_hosts.erase(std::min_element(
        failed_hosts.begin(), failed_hosts.end(),
        [](const auto& one, const auto& other) { return one.second < other.second; }));
  }
  ++failed_hosts[host];
}

PodOutcome EndOfContainer(const Ended& ended, bool init) {
  PodOutcome end;
  end.exit_code = ended.exit_code;
  end.at = ended.finished;
  end.reason = ended.reason;
  if (ended.reason == "OOMKilled") {
    end.cause = EndCause::kMemory;
    end.message =
        "the container ran out of memory: raise resources.limits.memory, or lower "
        "processCountPerNode";
  } else if (init) {
    end.cause = EndCause::kJob;
    end.reason = Reason("RuntimeInstallFailed");
    end.message = fmt::format("init container runtime ended with exit code {}{}", ended.exit_code,
                              Words(ended.message));
  } else if (WasToldToGo(ended)) {
    end.cause = EndCause::kDrained;
  } else if (ended.exit_code == 0) {
    end.cause = EndCause::kFinished;
  } else {
    end.cause = EndCause::kJob;
    end.reason = ReasonOf(ended);
    end.message =
        fmt::format("{}, exit code {}{}", end.reason, ended.exit_code, Words(ended.message));
    if (ended.reason == "StartError" || ended.reason == "ContainerCannotRun") {
      end.message +=
          ": the image must let user 65532 run programs, unless "
          "podTemplate.spec.securityContext names another";
    }
  }
  return end;
}

}  // namespace

PodOutcome EndOf(const PodDigest& pod) {
  PodOutcome end;
  if (!pod.disruption.empty() || IsDisruption(pod.reason)) {
    end.reason = pod.disruption.empty() ? pod.reason : pod.disruption;
    end.message = end.reason + (pod.message.empty() ? Meaning(end.reason) : Words(pod.message));
    if (pod.main.ended) end.exit_code = pod.main.ended->exit_code;
    return end;
  }
  // One that did not end within its grace was taken away all the same.
  const bool overdue = pod.deletion && pod.main.ended && pod.main.ended->exit_code > 128 &&
                       pod.main.ended->reason != "OOMKilled";
  if (pod.Terminal() && pod.main.ended && !overdue) return EndOfContainer(*pod.main.ended, false);
  if (pod.Terminal() && pod.init.ended && pod.init.ended->exit_code != 0) {
    return EndOfContainer(*pod.init.ended, true);
  }
  if (pod.reason == "DeadlineExceeded") {
    end.cause = EndCause::kJob;
    end.reason = pod.reason;
    end.message = "activeDeadlineSeconds of the podTemplate has passed";
    return end;
  }
  // Deleted, or ended without a word of its containers (PodGC, disk pressure).
  end.reason = pod.reason;
  if (end.reason.empty()) end.reason = Reason("PodMissing");
  if (pod.deletion) end.reason = Reason("Deleted");
  end.message = end.reason + Words(pod.message);
  return end;
}

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
  Succession next{{}, last->failures, last->failed_hosts};
  switch (end.cause) {
    case EndCause::kFinished: next.not_before = at + kFinishedPause; return next;
    case EndCause::kDrained: return next;
    // At once, but a pod that is refused as soon as it is made is not made in a loop.
    case EndCause::kDisruption: next.not_before = last->created + kFirstBackOff; return next;
    case EndCause::kMemory:
    case EndCause::kJob: break;
  }
  if (at - last->created >= kLongLife) next = {};
  ++next.failures;
  if (end.cause == EndCause::kJob) NoteHost(last->node_name, next.failed_hosts);
  Duration pause = kFirstBackOff;
  for (int32_t i = 1; i < next.failures && pause < kLongestBackOff; ++i) pause *= 2;
  next.not_before = at + std::min(pause, kLongestBackOff);
  return next;
}

bool MayRun(const PodDigest& pod, WallTime now) {
  if (pod.Terminal()) return false;
  return !pod.deletion || now < GivenUpAt(pod);
}

WallTime GivenUpAt(const PodDigest& pod) { return *pod.deletion + kDeadMachine; }

}  // namespace parallelrun::operators
