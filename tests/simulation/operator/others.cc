// The kubelet, the coordinator's container and the user.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/simulation/operator/world.h"

namespace parallelrun {

void OperatorWorld::EndPod(PodDigest& pod, int exit_code, const std::string& reason) {
  Trace(fmt::format("{} ends with {} {}", pod.name, exit_code, reason));
  pod.phase = exit_code == 0 ? PodPhase::kSucceeded : PodPhase::kFailed;
  pod.main.running = pod.ready = false;
  pod.main.ended = Ended{exit_code, reason, "", pod.created, now_};
  if (pod.role == PodRole::kNode && (exit_code == 1 || exit_code == 2)) ++own_failures_;
}

// A coordinator's container at work: what it does is in the ledger before anybody hears of it.
void OperatorWorld::WorkOn(const PodDigest& coordinator, bool faults) {
  if (ledger_.owner != coordinator.uid) return;
  if (ledger_.verdict) return;
  int workers = 0;
  for (const auto& [name, pod] : pods_) {
    if (pod.role == PodRole::kNode && pod.main.running && !dead_.contains(name)) ++workers;
  }
  if (ledger_.settled < ledger_.total) {
    const int64_t most = faults ? ledger_.total - 1 : ledger_.total;
    ledger_.settled = std::min(std::max(most, ledger_.settled), ledger_.settled + workers);
  } else if (Chance(0.3)) {
    ledger_.verdict = !ledger_.will_fail;
    Trace(*ledger_.verdict ? "the ledger says Succeeded" : "the ledger says Failed");
  }
}

void OperatorWorld::StepPod(PodDigest pod, bool faults) {
  const bool coordinator = pod.role == PodRole::kCoordinator;
  const bool dead = dead_.contains(pod.name);
  if (pod.deletion) {
    if (dead) return;  // Terminating for ever
    if (removed_at_.try_emplace(pod.name, now_ + seconds(Below(60))).first->second <= now_) {
      removed_at_.erase(pod.name);
      RemovePod(pod.name);
    }
    return;
  }
  if (pod.Terminal()) {
    if (faults && Chance(0.01)) RemovePod(pod.name);  // PodGC
    return;
  }
  if (dead) {  // the taint's toleration has passed
    pod.deletion = now_ + seconds(30);
    pod.disruption = "DeletionByTaintManager";
    return StorePod(std::move(pod));
  }
  if (!pod.main.running) {
    if (faults && Chance(0.05)) {
      pod.main.waiting_reason = "ImagePullBackOff";
      return StorePod(std::move(pod));
    }
    if (!Chance(0.5)) return;
    pod.main.waiting_reason.clear();
    pod.phase = PodPhase::kRunning;
    pod.main.running = pod.ready = true;
    pod.ip = "10.0.0.1";
    if (coordinator) {
      ledger_.owner = pod.uid;
      ledger_.control_generation = 0;
      ledger_.node_count = job().node_count;
    }
    return StorePod(std::move(pod));
  }
  if (coordinator) {
    if (ledger_.owner == pod.uid && ledger_.verdict && Chance(0.3)) {
      if (*ledger_.verdict) {
        EndPod(pod, 0, "Completed");
        const nlohmann::json batches = {{"total", ledger_.total}, {"succeeded", ledger_.total}};
        pod.main.ended->message =
            nlohmann::json{{"progress", {{"state", "Succeeded"}, {"miniBatches", batches}}}}.dump();
      } else {  // restartPolicy OnFailure: it is started again
        ++pod.main.restarts;
        pod.main.ended = Ended{1, "Error",
                               ledger_.canceled ? R"({"progress": {"state": "Failed",
            "verdict": {"outcome": "Failed", "reason": "Canceled", "message": ""}}})"
                                                : "",
                               pod.created, now_};
      }
      return StorePod(std::move(pod));
    }
    if (faults && Chance(0.01)) {
      ++pod.main.restarts;
      pod.main.ended = Ended{137, "OOMKilled", "", pod.created, now_};
      ledger_.owner = pod.uid;
      ledger_.control_generation = 0;
      return StorePod(std::move(pod));
    }
    WorkOn(pod, faults);
  } else {
    if (ledger_.verdict && Chance(0.3)) return EndPod(pod, 0, "Completed"), StorePod(pod);
    if (pod.index >= ledger_.node_count && Chance(0.2)) {
      return EndPod(pod, 3, "Error"), StorePod(pod);
    }
    if (faults && Chance(0.02)) {
      const int how = Below(4);
      if (how == 3) pod.reason = "Evicted";
      EndPod(pod, how == 0 ? 1 : how == 1 ? 2 : 137, how == 2 ? "OOMKilled" : "Error");
      return StorePod(std::move(pod));
    }
  }
  if (faults && Chance(0.005)) {
    Trace("the machine of " + pod.name + " dies");
    dead_.insert(pod.name);
    if (ledger_.owner == pod.uid) ledger_.owner.clear();
  } else if (faults && Chance(0.003)) {
    RemovePod(pod.name);  // force deleted
    if (ledger_.owner == pod.uid) ledger_.owner.clear();
  }
}

void OperatorWorld::Kubelet(bool faults) {
  std::vector<std::string> names;
  for (const auto& [name, pod] : pods_) names.push_back(name);
  for (const std::string& name : names) {
    const auto found = pods_.find(name);
    if (found != pods_.end()) StepPod(found->second, faults);
  }
  if (faults && Chance(0.01)) {  // somebody deletes what is not theirs
    std::erase_if(objects_, [&](const auto& one) {
      return one.first.kind == FactKind::kService && Chance(0.5);
    });
  }
  if (Chance(0.2)) code_there_ = true;
}

void OperatorWorld::User() {
  StoredJob changed = job();
  ++changed.generation;
  const int what = Below(20);
  if (what < 8) {
    changed.node_count = Below(6);
    Trace(fmt::format("nodeCount {}", changed.node_count));
  } else if (what < 16) {
    changed.suspend = !changed.suspend;
    Trace(changed.suspend ? "suspend" : "resume");
  } else if (what < 18) {
    changed.cancel = true;
    Trace("cancel");
  } else if (Chance(0.2)) {
    changed.deleting = true;
    Trace("deleted");
  }
  StoreJob(std::move(changed));
}

}  // namespace parallelrun
