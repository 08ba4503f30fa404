// Why the pods of a job do not run: what the kubelet, the scheduler and the API server say, worst
// first, in words that name the mend where there is one.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>

#include "api/object_names.h"
#include "operator/plan/claims.h"
#include "operator/plan/cures.h"
#include "operator/plan/draft.h"
#include "operator/plan/missing_key.h"

namespace parallelrun::operators {
namespace {

using reasons::Reason;

constexpr Duration kQuietPending = seconds(5);
constexpr Duration kFirstEventsLast = seconds(10);
constexpr Duration kEventsLast = seconds(30);
constexpr Duration kYoungPod = seconds(20);  // its events are read twice by then
constexpr int kMostEventReads = 5;

std::string NameOf(const PodDigest& pod) {
  return pod.role == PodRole::kCoordinator ? "coordinator" : fmt::format("node {}", pod.index);
}

struct Known {
  const char* seen;  // of a container or an event
  Reason reason;     // of the condition: one word for what flips between several
  int rank;
};

// Reasons of waiting containers.
constexpr Known kWaiting[] = {
    {"ImagePullBackOff", "ImagePullBackOff", 60},
    {"ErrImagePull", "ImagePullBackOff", 60},
    {"ErrImageNeverPull", "ImagePullBackOff", 60},
    {"InvalidImageName", "InvalidImageName", 60},
    {"ImageInspectError", "ImagePullBackOff", 60},
    {"RegistryUnavailable", "ImagePullBackOff", 60},
    {"CreateContainerConfigError", "CreateContainerConfigError", 55},
    {"CreateContainerError", "CreateContainerError", 54},
    {"RunContainerError", "CreateContainerError", 54},
    {"CrashLoopBackOff", "CrashLoopBackOff", 20},
};

// Events of pods that say why a container does not even wait.
constexpr Known kEvents[] = {
    {"FailedMount", "FailedMount", 45},
    {"FailedAttachVolume", "FailedAttachVolume", 45},
    {"FailedMapVolume", "FailedMount", 45},
    {"FailedCreatePodSandBox", "FailedCreatePodSandBox", 44},
};

template <size_t N>
const Known* Find(const Known (&list)[N], const std::string& seen) {
  const auto found = std::find_if(std::begin(list), std::end(list),
                                  [&](const Known& known) { return seen == known.seen; });
  return found == std::end(list) ? nullptr : found;
}

std::string Mend(Reason reason, const std::string& message) {
  if (message.find("Multi-Attach") != std::string::npos) {
    return ": another host still holds the volume; if that host is gone for good, taint it "
           "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute";
  }
  if (reason == "CreateContainerConfigError" && message.find("runAsNonRoot") != std::string::npos) {
    return ": pods run as user 65532 unless podTemplate.spec.securityContext says otherwise";
  }
  return "";
}

void AddContainer(Draft& draft, const PodDigest& pod, const ContainerDigest& container) {
  const Known* const known = Find(kWaiting, container.waiting_reason);
  if (known == nullptr) return;
  std::string message = container.waiting_message;
  if (known->rank == 20 && container.ended) {
    const LastWords words = ParseLastWords(container.ended->message);
    message = fmt::format("it ended with {}, exit code {}{}{}", container.ended->reason,
                          container.ended->exit_code, words.error.empty() ? "" : ": ", words.error);
  }
  if (message.empty()) message = container.waiting_reason;
  const bool image = known->reason == "ImagePullBackOff" || known->reason == "InvalidImageName";
  const bool runtime = pod.role == PodRole::kCoordinator || &container == &pod.init;
  draft.obstacles.push_back(
      {known->rank, known->reason,
       NameOf(pod) + ": " + message +
           (image ? CureOfImage(draft.spec, runtime, message) : Mend(known->reason, message))});
}

void AddUnschedulable(Draft& draft, const PodDigest& pod, const std::string& message) {
  const bool one_host = draft.status.effective.one_host;
  const bool affinity = message.find("pod affinity rules") != std::string::npos;
  if (one_host && affinity) {
    draft.obstacles.push_back(
        {50, "VolumeNotShared",
         fmt::format("{}: a PersistentVolumeClaim is ReadWriteOnce, so all pods run on one host, "
                     "which has no room: use a ReadWriteMany class, or nodeCount 1 ({})",
                     NameOf(pod), message)});
    return;
  }
  // What provides volumes needs a while for a new one; nothing is wrong with the job, until the
  // claim says so (claims.cc).
  if (message.find("unbound immediate PersistentVolumeClaims") != std::string::npos) {
    // Of the claim that the operator makes a class is named in the job, and not by its owner.
    const bool own =
        pod.role == PodRole::kCoordinator && !draft.spec.state.claim_template.is_null();
    const std::string mend = fmt::format(
        "; the operator made PersistentVolumeClaim {} for the state: where the cluster has no "
        "default StorageClass (kubectl get storageclass), name one in "
        "state.volumeClaimTemplate.spec.storageClassName",
        api::StateClaimName(draft.identity.name, draft.identity.uid));
    draft.obstacles.push_back(
        {40, "VolumeNotBound", NameOf(pod) + ": " + message + (own ? mend : ""), false, false});
    return;
  }
  draft.obstacles.push_back(
      {40, "Unschedulable",
       NameOf(pod) + ": " + message + CureOfUnschedulable(draft.spec, pod.role, message)});
}

// What is not in the pod's status: events, read once it has been pending for a while. A pod without
// a host is the scheduler's, whose words are in its status; and a list of events is dear, since the
// API server reads all those of the namespace for it.
void AddEvents(Draft& draft, const PodDigest& pod, int& reads) {
  if (pod.node_name.empty()) return;
  if (pod.created + kQuietPending > draft.now) return draft.Wake(pod.created + kQuietPending);
  if (reads++ >= kMostEventReads) return;
  const Duration max_age = draft.now < pod.created + kYoungPod ? kFirstEventsLast : kEventsLast;
  draft.WakeIn(max_age);
  const Fact* const fact = draft.Know(FactKind::kPodEvents, pod.uid, max_age, false);
  if (fact == nullptr) return;
  // The kubelet adds every two minutes that it still waits, which names no cause.
  const auto less = [](const PodEvent& a, const PodEvent& b) {
    const auto key = [](const PodEvent& event) {
      return std::pair(!event.message.starts_with("Unable to attach or mount volumes"), event.last);
    };
    return key(a) < key(b);
  };
  const PodEvent* latest = nullptr;
  for (const PodEvent& event : fact->events) {
    if (!event.warning || Find(kEvents, event.reason) == nullptr) continue;
    if (latest == nullptr || less(*latest, event)) latest = &event;
  }
  if (latest == nullptr) return;
  const Known& known = *Find(kEvents, latest->reason);
  if (const std::string words = MissingKey(draft.spec, latest->message); !words.empty()) {
    draft.obstacles.push_back({known.rank, known.reason,
                               fmt::format("{}: {} ({})", NameOf(pod), words, latest->message)});
    return;
  }
  draft.obstacles.push_back(
      {known.rank, known.reason,
       NameOf(pod) + ": " + latest->message + Mend(known.reason, latest->message)});
}

// An action that the API server refused.
void AddFailure(Draft& draft, const ApplyFailure& failure) {
  if (failure.at + kFailuresLast < draft.now || failure.reason == kNamespaceTerminating) return;
  const bool pod = failure.object.starts_with("pods/");
  const std::string& text = failure.message;
  const auto add = [&](int rank, Reason reason, bool stalled, const std::string& mend = "",
                       bool warning = true) {
    draft.obstacles.push_back(
        {rank, reason, failure.object + ": " + text + mend, stalled, warning});
  };
  if (text.find("exceeded quota") != std::string::npos ||
      text.find("failed quota") != std::string::npos) {
    return add(52, "QuotaExceeded", false, CureOfQuota(draft.identity, failure));
  }
  if (text.find("violates PodSecurity") != std::string::npos) {
    return add(58, "PodSecurityViolation", true,
               ": remove from podTemplate what the namespace's Pod Security level refuses");
  }
  // Of a name that is still Terminating: a matter of seconds.
  if (failure.reason == "AlreadyExists") return add(11, "NameTerminating", false, "", false);
  // A conflict of the API server's own, as of a ResourceQuota's bookkeeping, is tried again.
  if (failure.status == 409 && failure.reason != "Conflict") {
    return add(100, "NameTaken", true, ": delete that object, which is not this job's");
  }
  const std::string cure = CureOfLimitRange(draft.spec, draft.identity, failure);
  if (failure.status == 403) return add(57, "Forbidden", false, cure);
  if (failure.status == 422 || failure.status == 400) {
    const std::string mend = pod && cure.empty() ? ": fix podTemplate, resources or volumes" : cure;
    return add(59, pod ? Reason("InvalidPodTemplate") : Reason("Refused"), true, mend);
  }
  add(12, "ApplyFailed", false);
}

void AddPod(Draft& draft, const PodDigest& pod, int& event_reads) {
  if (!pod.Live() || pod.ready) return;
  const size_t before = draft.obstacles.size();
  AddContainer(draft, pod, pod.init);
  AddContainer(draft, pod, pod.main);
  if (!pod.unschedulable.empty() && pod.node_name.empty()) {
    AddUnschedulable(draft, pod, pod.unschedulable);
  }
  if (draft.obstacles.size() == before && pod.phase == PodPhase::kPending) {
    AddEvents(draft, pod, event_reads);
  }
  if (pod.host_silent) {
    draft.obstacles.push_back(
        {17, "HostNotReady",
         fmt::format("{}: its host {} does not answer; its work goes on elsewhere, and the pod is "
                     "made again if the host stays away",
                     NameOf(pod), pod.node_name)});
  }
}

}  // namespace

void FindObstacles(Draft& draft) {
  int event_reads = 0;
  for (const PodDigest* pod : draft.groups.coordinator.pods) AddPod(draft, *pod, event_reads);
  for (const auto& [index, group] : draft.groups.nodes) {
    if (index >= draft.spec.node_count) break;
    for (const PodDigest* pod : group.pods) AddPod(draft, *pod, event_reads);
  }
  FindUnboundClaims(draft);
  for (const ApplyFailure& failure : draft.seen.failures) AddFailure(draft, failure);
  for (const ApplyFailure& failure : draft.seen.passing) AddFailure(draft, failure);
  if (draft.report && !draft.report->paused.empty()) {
    draft.obstacles.push_back(
        {30, "CoordinatorPaused",
         draft.report->paused + "; make room on the volume, and the job goes on by itself"});
  }
  std::stable_sort(draft.obstacles.begin(), draft.obstacles.end(),
                   [](const Obstacle& a, const Obstacle& b) { return a.rank > b.rank; });
}

}  // namespace parallelrun::operators
