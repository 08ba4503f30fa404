// Starts what is missing, twice a second, as simple supervisors do; and the person behind it, who
// changes the number of nodes and applies other jobs on the same folders.
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "coordinator/control.h"
#include "tests/simulation/supervisor.h"
#include "tests/simulation/world.h"

namespace parallelrun::simulation {

class PlainSupervisor final : public Supervisor {
 public:
  explicit PlainSupervisor(World& world);

  void Start() override;
  void OnCoordinatorEnd(size_t id, const SimCoordinator& coordinator,
                        coordinator::CoordinatorExit exit) override;
  void OnAgentEnd(size_t id, agent::AgentEnd end) override;
  void OnCoordinatorKilled(size_t) override {}
  void OnAgentKilled(size_t id) override;
  bool Do(Fault fault) override;
  void Heal() override {}

 private:
  void Supervise();
  void Tell();
  void StartCoordinator();
  void StartAgent(uint32_t node);
  void NewJob(std::initializer_list<api::IfExists> ways);

  World& world_;
  const Scenario& scenario_;
  std::string uid_ = "uid";  // of the job that is wanted now
  api::IfExists if_exists_ = api::IfExists::kFail;
  uint32_t new_jobs_ = 0;
  uint32_t wanted_;  // nodes
  uint32_t access_ = 0;
  uint64_t last_pod_ = 0;
  std::map<uint32_t, coordinator::PodEnd> pod_ends_;  // the newest of each node
  size_t newest_ = 0;                                 // the coordinator that was started last
  std::vector<bool> finished_;                        // nodes that heard that the job is over
};

}  // namespace parallelrun::simulation
