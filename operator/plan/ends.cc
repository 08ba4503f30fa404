#include "operator/plan/ends.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "reasons/reason.h"

namespace parallelrun::operators {
namespace {

using reasons::Reason;

constexpr char kEvicted[] = "Evicted";
constexpr char kByKubelet[] = "TerminationByKubelet";
// What nobody knows is nobody's fault so often, and then the pod's own.
constexpr int32_t kUnknownIsFree = 3;

// By their words alone: the kubelet's messages are no API, and are only shown. Its "has larger
// consumption of" blames pods that asked for nothing and used 60 KiB.
std::optional<EndCause> OfPodReason(std::string_view reason) {
  static constexpr std::array<std::string_view, 2> kTakenAway = {"NodeLost", "Preempting"};
  // Of kubelets that admit the pod not, or shut down; no container of most of these ever ran.
  static constexpr std::array<std::string_view, 8> kRefusals = {
      "NodeAffinity",        "NodeShutdown",          "Shutdown",
      "Terminated",          "TopologyAffinityError", "UnexpectedAdmissionError",
      "UnexpectedPodStatus", "InvalidNodeInfo"};
  const auto has = [&](const auto& words) {
    return std::find(words.begin(), words.end(), reason) != words.end();
  };
  if (has(kTakenAway)) return EndCause::kDisruption;
  if (reason.starts_with("OutOf") || has(kRefusals)) return EndCause::kRefused;
  return std::nullopt;
}

std::optional<EndCause> OfDisruption(std::string_view reason) {
  static constexpr std::array<std::string_view, 4> kTakenAway = {
      "PreemptionByScheduler", "EvictionByEvictionAPI", "DeletionByTaintManager",
      "DeletionByPodGC"};
  if (std::find(kTakenAway.begin(), kTakenAway.end(), reason) != kTakenAway.end()) {
    return EndCause::kDisruption;
  }
  if (reason == kByKubelet) return EndCause::kRefused;
  return std::nullopt;
}

// Whether the end was nobody's in the job, and of which kind; nothing: its containers say.
std::optional<EndCause> OfPod(const PodDigest& pod) {
  const std::optional<EndCause> disruption = OfDisruption(pod.disruption);
  // A kubelet evicts for two reasons. Where its host runs short it says so by the condition; where
  // the pod has passed a limit of its own, which a script that fills its disk does again and again,
  // it does not.
  if (pod.reason == kEvicted) {
    if (pod.disruption == kByKubelet) return EndCause::kPressure;
    return disruption.value_or(EndCause::kDisk);
  }
  if (const auto cause = OfPodReason(pod.reason)) return cause;
  if (disruption) return disruption;
  const bool judged = pod.reason.empty() || pod.main.ended || pod.reason == "DeadlineExceeded" ||
                      (pod.init.ended && pod.init.ended->exit_code != 0);
  if (pod.disruption.empty() && judged) return std::nullopt;
  return pod.setbacks < kUnknownIsFree ? EndCause::kRefused : EndCause::kJob;
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

// The same without its full stop: more follows.
std::string Clause(const std::string& message) {
  const size_t last = message.find_last_not_of(" \n.");
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

// What was no container's own end.
PodOutcome EndOfPod(const PodDigest& pod, EndCause cause) {
  PodOutcome end;
  end.cause = cause;
  end.reason = pod.disruption.empty() || cause == EndCause::kDisk ? pod.reason : pod.disruption;
  if (pod.main.ended) {
    end.exit_code = pod.main.ended->exit_code;
    end.at = pod.main.ended->finished;
  }
  if (cause == EndCause::kDisk) {
    end.message = fmt::format(
        "{}{}; it used more disk than its own limits allow: raise ephemeral-storage of "
        "resources.limits or the sizeLimit of its volume, or have the script write less",
        pod.reason, Clause(pod.message));
  } else if (cause == EndCause::kPressure) {
    end.message = fmt::format("{}{}; its host ran short, and another one is taken if there is one",
                              pod.reason, Clause(pod.message));
  } else {
    end.message = end.reason + (pod.message.empty() ? Meaning(end.reason) : Words(pod.message));
  }
  return end;
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
  if (const auto cause = OfPod(pod)) return EndOfPod(pod, *cause);
  PodOutcome end;
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

bool NobodysFault(EndCause cause) {
  return cause == EndCause::kDisruption || cause == EndCause::kRefused ||
         cause == EndCause::kPressure;
}

}  // namespace parallelrun::operators
