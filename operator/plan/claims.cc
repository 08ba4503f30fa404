#include "operator/plan/claims.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <initializer_list>

#include "base/json.h"

namespace parallelrun::operators {
namespace {

constexpr Duration kQuietUnbound = seconds(5);
// A list of events is dear; a claim that has waited for a while goes on for longer.
constexpr Duration kFirstClaimsLast = seconds(15);
constexpr Duration kClaimsLast = seconds(30);
constexpr Duration kYoungClaim = seconds(60);
// Controllers tell a failure again at least every 5 minutes; one that they tell no more is over.
constexpr Duration kFailureLasts = seconds(600);
constexpr int kMostClaimReads = 5;

bool Mentions(const std::string& text, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](const char* word) { return text.find(word) != std::string::npos; });
}

// A pod that no host has been found for. Of one whose volumes are made for its host, the scheduler
// says nothing for up to ten minutes.
bool MayWaitForVolumes(const PodDigest& pod) {
  return pod.Live() && pod.phase == PodPhase::kPending && pod.node_name.empty() &&
         (pod.unschedulable.empty() ||
          Mentions(pod.unschedulable, {"PersistentVolumeClaim", "persistentvolumeclaim",
                                       "persistent volumes", "VolumeBinding"}));
}

bool Unbound(const Fact& claim) { return claim.phase == "Pending" || claim.phase == "Lost"; }

// The newest of the claim's events that says what is wrong; else one that says what it waits for.
const PodEvent* Telling(const Fact& fact, WallTime now) {
  const PodEvent* failure = nullptr;
  const PodEvent* waits = nullptr;
  for (const PodEvent& event : fact.events) {
    // That nothing fits and no class makes one is no Warning of Kubernetes.
    const bool failed = event.warning || event.reason == "FailedBinding";
    if (!failed && event.reason != "ExternalProvisioning") continue;
    if (failed && event.last + kFailureLasts < now) continue;
    const PodEvent*& latest = failed ? failure : waits;
    if (latest == nullptr || latest->last < event.last) latest = &event;
  }
  return failure != nullptr ? failure : waits;
}

std::string CureOfClaim(const Draft& draft, const api::Volume& volume, const std::string& claim,
                        const std::string& message) {
  const bool made = volume.name == api::kStateVolume && !draft.spec.state.claim_template.is_null();
  const std::string where =
      made
          ? "name one that is there in state.volumeClaimTemplate.spec.storageClassName of a new job"
          : "have a new claim name one that is there";
  if (Mentions(message, {"storageclass"}) && Mentions(message, {"not found"})) {
    return "create that StorageClass, and the job goes on by itself, or " + where +
           " (kubectl get storageclass)";
  }
  if (Mentions(message, {"no storage class is set"})) {
    return "the cluster has no default StorageClass: create a PersistentVolume that fits, and the "
           "job goes on by itself, or " +
           where + " (kubectl get storageclass)";
  }
  if (Mentions(message, {"ReadWriteOnce", "access mode", "AccessMode", "MULTI_NODE"})) {
    return "its class makes no volumes that several hosts can mount: name another class, or use a "
           "ReadWriteOnce claim, and all pods run on one host";
  }
  return "kubectl describe pvc " + claim + " has all its events; the job goes on by itself";
}

class Claims {
 public:
  explicit Claims(Draft& draft) : draft_(draft) {
    for (const PodDigest& pod : draft.seen.pods) {
      if (!MayWaitForVolumes(pod)) continue;
      if (!waits_ || pod.created < since_) since_ = pod.created;
      waits_ = true;
      coordinator_ |= pod.role == PodRole::kCoordinator;
    }
  }

  void Find() {
    if (!waits_) return;
    for (const api::Volume& volume : draft_.spec.volumes) {
      if (volume.kind != "persistentVolumeClaim") continue;
      if (!coordinator_ && !MountedOnNodes(draft_.spec, volume.name)) continue;
      const std::string claim = lenient::Text(volume.source, "claimName");
      if (!claim.empty()) Look(volume, claim);
    }
  }

 private:
  void Look(const api::Volume& volume, const std::string& claim) {
    const auto known = draft_.seen.facts.find({FactKind::kClaim, claim});
    const bool there = known != draft_.seen.facts.end();
    const Duration max_age = draft_.now < since_ + kYoungClaim ? kFirstClaimsLast : kClaimsLast;
    // What is known is asked for all the same: else it would be forgotten, and read for each plan.
    if (there && !Unbound(known->second)) {
      draft_.Know(FactKind::kClaim, claim, kChildrenLast, false);
      return;
    }
    if (draft_.now < since_ + kQuietUnbound) {
      if (there) draft_.Know(FactKind::kClaim, claim, max_age, false);
      return draft_.Wake(since_ + kQuietUnbound);
    }
    if (reads_++ >= kMostClaimReads) return;
    draft_.WakeIn(max_age);
    const Fact* const fact = draft_.Know(FactKind::kClaim, claim, max_age, false);
    if (fact == nullptr || !Unbound(*fact) || fact->uid.empty()) return;
    const Fact* const events = draft_.Know(FactKind::kClaimEvents, fact->uid, max_age, false);
    const PodEvent* const said = events == nullptr ? nullptr : Telling(*events, draft_.now);
    if (said == nullptr) return;
    const bool failed = said->reason != "ExternalProvisioning";
    draft_.obstacles.push_back(
        {41, "VolumeNotBound",
         fmt::format("PersistentVolumeClaim {} (spec.volumes: {}) has no volume: {}{}", claim,
                     volume.name, said->message,
                     failed ? "; " + CureOfClaim(draft_, volume, claim, said->message) : ""),
         failed, failed});
  }

  Draft& draft_;
  bool waits_ = false;
  bool coordinator_ = false;
  WallTime since_{};  // the oldest pod that waits was made
  int reads_ = 0;
};

}  // namespace

void FindUnboundClaims(Draft& draft) { Claims(draft).Find(); }

}  // namespace parallelrun::operators
