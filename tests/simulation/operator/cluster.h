// One job on a cluster: an API server, operators with caches that lag, kubelets whose containers
// are the coordinators and agents of a World, and a user. All of it on the World's clock; a seed is
// a whole run. Faults come for a while, then none, and the job must end.
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <string>

#include "operator/options.h"
#include "tests/simulation/operator/api_server.h"
#include "tests/simulation/operator/kubelet.h"
#include "tests/simulation/operator/sim_operator.h"
#include "tests/simulation/supervisor.h"
#include "tests/simulation/world.h"

namespace parallelrun::simulation {

// The rates and constants of the job's faults, as a cluster has them.
Scenario DrawOnCluster(uint64_t seed);

class Cluster final : public Supervisor {
 public:
  explicit Cluster(World& world);

  void Start() override;
  void OnCoordinatorEnd(size_t, const SimCoordinator& coordinator,
                        coordinator::CoordinatorExit exit) override {
    kubelet_.OnCoordinatorEnd(coordinator, exit);
  }
  void OnAgentEnd(size_t id, agent::AgentEnd end) override { kubelet_.OnAgentEnd(id, end); }
  void OnCoordinatorKilled(size_t id) override { kubelet_.OnCoordinatorKilled(id); }
  void OnAgentKilled(size_t id) override { kubelet_.OnAgentKilled(id); }
  bool Do(Fault fault) override;
  void Heal() override;

  // Once the run has ended: nothing happens any more, and what the job says of itself is true.
  void CheckEnd();
  uint64_t plans() const { return operators_[0].plans() + operators_[1].plans(); }

  World& world() { return world_; }
  ApiServer& api() { return api_; }
  Kubelet& kubelet() { return kubelet_; }
  const api::ParsedJob& job() const { return job_; }
  const operators::OperatorOptions& options() const { return options_; }
  WallTime Wall() const;
  bool Chance(uint32_t of_1000) { return world_.Chance(of_1000); }
  // What goes wrong on this cluster, while there are faults.
  bool GoesWrong(uint32_t of_1000) { return world_.faulty() && Chance(rate_ * of_1000); }
  // Both operators believe to lead, for the time of the faults.
  bool two_operators() const { return two_operators_; }
  // Pods that were seen to run by an operator which wrote its status thereafter.
  void NoteRunning(const std::string& pod) { seen_running_.insert(pod); }
  bool SeenRunning(const std::string& pod) const { return seen_running_.contains(pod); }
  // The user's ConfigMap.
  bool code_there() const { return code_there_; }
  void Violated(const std::string& what) { world_.oracle().Violated("operator", what); }

 private:
  void Every(Duration mean, void (Cluster::*event)());
  void StepKubelet() { kubelet_.Step(); }
  void StepOperators();
  void StepUser();
  void CheckPods();
  bool Settled() const;
  void CheckStatus();

  World& world_;
  ApiServer api_;
  Kubelet kubelet_;
  const bool two_operators_;
  api::ParsedJob job_;
  operators::OperatorOptions options_;
  bool code_there_ = true;
  bool was_suspended_ = false;
  uint32_t rate_;
  size_t leader_ = 0;
  std::set<std::string> seen_running_;
  std::array<SimOperator, 2> operators_;
};

}  // namespace parallelrun::simulation
