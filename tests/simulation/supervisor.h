// Whoever starts the coordinators and agents of a World and hears how they end: PlainSupervisor, or
// the operator with its kubelet (operator/cluster.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "agent/core/agent_core.h"
#include "api/job.h"
#include "coordinator/last_words.h"
#include "tests/simulation/scenario.h"

namespace parallelrun::simulation {

class SimCoordinator;

// What a coordinator is started with.
struct CoordinatorStart {
  std::string uid;  // of the job
  api::IfExists if_exists = api::IfExists::kFail;
  uint32_t access = 0;  // agents and coordinators that know each other's keys
  uint32_t nodes = 1;
  uint64_t pod = 0;  // number; 0: it is no pod
};

struct AgentStart {
  uint32_t node = 0;
  uint32_t access = 0;
  uint64_t pod = 0;
};

class Supervisor {
 public:
  Supervisor() = default;
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;
  virtual ~Supervisor() = default;

  virtual void Start() = 0;
  // Those that ended by themselves. They must not be ended or started in here.
  virtual void OnCoordinatorEnd(size_t id, const SimCoordinator& coordinator,
                                coordinator::CoordinatorExit exit) = 0;
  virtual void OnAgentEnd(size_t id, agent::AgentEnd end) = 0;
  // Those that were killed, by a fault. An agent is still there to be asked.
  virtual void OnCoordinatorKilled(size_t id) = 0;
  virtual void OnAgentKilled(size_t id) = 0;
  // A fault that is the supervisor's: kSecondCoordinator, kSecondAgent, kScale, kNewJob. False: it
  // does not do that (any more).
  virtual bool Do(Fault fault) = 0;
  // No faults from here on.
  virtual void Heal() = 0;
};

}  // namespace parallelrun::simulation
