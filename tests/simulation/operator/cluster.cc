#include "tests/simulation/operator/cluster.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "ledger/claim.h"
#include "ledger/history.h"
#include "tests/simulation/sim_coordinator.h"

namespace parallelrun::simulation {
namespace {

constexpr WallTime kEpoch{seconds(1'000'000)};

const api::ParsedJob& BaseJob() {
  static const api::ParsedJob kJob = api::ReadJob(nlohmann::json::parse(R"({
      "apiVersion": "parallelrun.dev/v1alpha1", "kind": "ParallelRunJob",
      "metadata": {"name": "sim", "namespace": "default"},
      "spec": {"entryScript": "score.py", "code": {"configMap": {"name": "code"}},
        "environment": {"image": "i"},
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}],
        "inputs": [{"name": "in", "files": {"volume": "v", "path": "in"}}],
        "output": {"volume": "v"}}})"),
                                                  api::Target::kCluster);
  return kJob;
}

}  // namespace

Scenario DrawOnCluster(uint64_t seed) {
  Scenario s = Draw(seed, true);
  s.only_killers = false;  // here much else goes wrong
  FaultRng rng(seed + 7);
  s.pods = true;
  s.look = s.lease / 10;  // a newer epoch is seen at once
  s.new_jobs = 0;
  s.weights[static_cast<size_t>(Fault::kComeBetween)] = 0;
  s.weights[static_cast<size_t>(Fault::kNewJob)] = 0;
  // They end a job on a cluster, in words.
  s.weights[static_cast<size_t>(Fault::kForeignFile)] = 0;
  s.weights[static_cast<size_t>(Fault::kLedgerGone)] = 0;
  s.weights[static_cast<size_t>(Fault::kFolderGone)] = 0;
  s.ownerless = std::chrono::hours(24);
  s.rival = false;
  // Pods take seconds to start, and what an operator decides takes longer than a lease.
  s.run_mean = std::max<Duration>(s.run_mean, milliseconds(100 + rng.Below(1'900)));
  s.run_timeout = s.run_mean * 4 + seconds(4);
  s.faults_end = seconds(10 + rng.Below(120));
  // A node that fails again and again is started ever later, up to every ten minutes.
  if (s.killers > 0) s.max_losses = std::min<uint32_t>(s.max_losses, 2);
  s.bound = std::chrono::hours(6);
  DrawClocks(s, rng);
  return s;
}

Cluster::Cluster(World& world)
    : world_(world),
      api_([this] { CheckPods(); }),
      kubelet_(*this),
      two_operators_(world.scenario().seed % 4 == 3),
      job_(BaseJob()),
      rate_(static_cast<uint32_t>(world.rng().Below(4))),
      operators_{SimOperator(*this), SimOperator(*this)} {
  options_.runtime_image = "runtime";
  options_.network_policies = Chance(300);
  job_.job.spec.node_restart_limit =
      Chance(200) ? static_cast<int64_t>(world.rng().Below(3)) : 1000;
  job_.job.spec.coordinator.restart_limit = 1000;
  StoredJob first;
  first.node_count = static_cast<int32_t>(world.scenario().nodes);
  first.suspend = Chance(100);
  code_there_ = !Chance(200);
  operators::Fact claim;
  claim.access_modes = {Chance(500) ? "ReadWriteMany" : "ReadWriteOnce"};
  api_.objects[{operators::FactKind::kClaim, "c"}] = claim;
  api_.StoreJob(first);
}

WallTime Cluster::Wall() const { return kEpoch + (world_.now() - Instant(seconds(1000))); }

void Cluster::Every(Duration mean, void (Cluster::*event)()) {
  world_.After(world_.Around(mean), [this, mean, event] {
    Every(mean, event);
    (this->*event)();
  });
}

void Cluster::Start() {
  for (SimOperator& one : operators_) one.Restart();
  Every(milliseconds(100), &Cluster::StepOperators);
  Every(milliseconds(300), &Cluster::StepKubelet);
  Every(seconds(10), &Cluster::StepUser);
}

void Cluster::StepOperators() {
  if (GoesWrong(1)) {
    leader_ = 1 - leader_;
    operators_[leader_].Restart();
  }
  operators_[leader_].Step();
  if (two_operators_ && world_.faulty()) operators_[1 - leader_].Step();
  if (!world_.faulty() && Settled()) world_.JobOver(api_.job().status.Is("Complete"));
}

void Cluster::StepUser() {
  if (Chance(200)) code_there_ = true;
  if (GoesWrong(50)) {  // somebody deletes what is not theirs
    std::erase_if(api_.objects,
                  [](const auto& one) { return one.first.kind == operators::FactKind::kService; });
  }
  StoredJob changed = api_.job();
  ++changed.generation;
  if (GoesWrong(60)) {
    changed.suspend = !changed.suspend;
    was_suspended_ = true;
    world_.Trace(changed.suspend ? "suspend" : "resume");
  } else if (GoesWrong(5)) {
    changed.cancel = true;
    world_.Trace("cancel");
  } else if (GoesWrong(1)) {
    changed.deleting = true;
    world_.Trace("deleted");
  } else {
    return;
  }
  api_.StoreJob(std::move(changed));
}

bool Cluster::Do(Fault fault) {
  switch (fault) {
    case Fault::kSecondCoordinator: return kubelet_.LoseHost(operators::PodRole::kCoordinator);
    case Fault::kSecondAgent: return kubelet_.LoseHost(operators::PodRole::kNode);
    case Fault::kScale: {
      StoredJob changed = api_.job();
      ++changed.generation;
      changed.node_count = static_cast<int32_t>(world_.rng().Below(world_.scenario().nodes + 1));
      world_.Trace(fmt::format("nodeCount {}", changed.node_count));
      api_.StoreJob(std::move(changed));
      return true;
    }
    default: return false;
  }
}

// The user leaves the job alone, everything works.
void Cluster::Heal() {
  code_there_ = true;
  kubelet_.Heal();
  StoredJob healed = api_.job();
  if (!healed.suspend && healed.node_count > 0) return;
  ++healed.generation;
  healed.suspend = false;
  healed.node_count = std::max(1, healed.node_count);
  api_.StoreJob(std::move(healed));
}

// Never more live pods of an index than one, whatever is terminating.
void Cluster::CheckPods() {
  if (two_operators_) return;
  std::map<std::pair<operators::PodRole, int32_t>, int> live;
  for (const auto& [name, pod] : api_.pods()) {
    if (pod.Live() && ++live[{pod.role, pod.index}] > 1) Violated("two live pods: " + name);
  }
}

// Over, and as still as it will ever be.
bool Cluster::Settled() const {
  if (api_.job().deleting) return true;
  const auto& pods = api_.pods();
  const bool live =
      std::any_of(pods.begin(), pods.end(), [](const auto& pod) { return pod.second.Live(); });
  return api_.job().status.Over() && !live;
}

void Cluster::CheckEnd() {
  while (!api_.pods().empty()) api_.RemovePod(api_.pods().begin()->first);
  // Whatever is forgotten by then.
  operators_[0].Restart();
  for (int i = 0; i < 3; ++i) operators_[0].Step();
  if (!api_.pods().empty()) Violated("pods after the end");
  if (!api_.job().deleting) CheckStatus();
}

// What the job says of itself is what its ledger says.
void Cluster::CheckStatus() {
  const operators::JobStatus& status = api_.job().status;
  job::JobState ledger;
  const Result<ledger::History> history = ledger::ReplayHistory(
      world_.disk(), ledger::EpochsFolder(kStateFolder), world_.oracle().newest_claimed() + 1, 0,
      [&](const job::Record& record, const job::Place& place, const job::Place& rows) {
        return ledger.Apply(record, place, rows);
      });
  if (!history.ok()) return Violated(history.error().message);
  const auto& verdict = ledger.verdict();
  const bool succeeded = verdict && verdict->outcome == job::Outcome::kSucceeded;
  if (status.Is("Complete")) {
    if (!succeeded) return Violated("Complete without a verdict of success");
    if (!status.progress || status.progress->percent != 100) {
      Violated(fmt::format("Complete at {} %", status.progress ? status.progress->percent : -1));
    }
    return;
  }
  const std::string reason = status.Find("Failed")->reason;
  // A job may be given up that has just succeeded, where its coordinator could not say so any more.
  const bool unheard = kubelet_.lost_hosts() || was_suspended_;
  if (succeeded && !unheard && reason != "CoordinatorCannotStart") {
    return Violated("Failed (" + reason + ") though it succeeded");
  }
  if (verdict && reason == verdict->reason) return;
  if (reason == "Canceled") {
    if (!api_.job().cancel) Violated("nobody canceled");
  } else if (reason == "NodeRestartLimitExceeded") {
    const bool exceeded = kubelet_.own_failures() > *job_.job.spec.node_restart_limit;
    if (!two_operators_ && !exceeded) Violated("the restart limit was not exceeded");
  } else if (reason != "CoordinatorCannotStart") {
    Violated("unexpected reason " + reason);
  }
}

}  // namespace parallelrun::simulation
