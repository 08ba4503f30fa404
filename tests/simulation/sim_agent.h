// One agent process and its worker processes: what src/agent/agent.cc does with sockets and pipes,
// done with events. AgentCore is the real one; what the workers do is drawn.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "agent/core/agent_core.h"
#include "tests/simulation/world.h"

namespace parallelrun::simulation {

class SimAgent {
 public:
  SimAgent(World& world, size_t id, const AgentStart& start);
  ~SimAgent();

  uint32_t node() const { return node_; }
  uint32_t access() const { return access_; }
  uint64_t pod() const { return pod_; }
  Instant frozen_until{};
  void Pump();
  void Die();  // the whole node, without a word
  void Drain() { core_.Drain(seconds(2), Now()); }

 private:
  struct Task {
    uint64_t sequence = 0;
    DecodedWork work;
  };
  struct Worker {
    uint64_t life = 0;  // tells events of an ended process from those of its successor
    bool ready = false;
    std::deque<Task> tasks;
    bool busy = false;
    bool hung = false;  // a thread that run() left keeps the interpreter
    agent::StatusReading status;
    uint64_t taken_back = 0;
  };

  Instant Now() const { return clock_.At(world_.now()); }
  void Perform(const agent::WorkerAction& action);
  void Begin(uint32_t process, Worker& worker);  // with the task in front, if it can
  uint64_t WorkerName(uint32_t process) const { return uint64_t{id_} << 32 | process; }
  // Its run() has ended, or it has.
  void LeaveRun(uint32_t process, const Worker& worker);
  void ShutDown(uint32_t process, Worker& worker);
  void PassOver(uint32_t process, Worker& worker);
  void EndTask(uint32_t process, Worker& worker, bool well);
  void Exit(uint32_t process, const char* words);
  void OnWorker(uint32_t process, uint64_t life, Duration delay,
                std::function<void(SimAgent&, Worker&)> event);
  void Call(agent::CallKind call);
  void SplitRows(job::ExchangeRequest& request);
  void OnAnswer(agent::CallKind call, const World::Answer& answer);
  void Wake();

  World& world_;
  const OwnClock clock_;
  const size_t id_;
  const uint32_t node_;
  const uint32_t access_;
  const uint64_t pod_;  // number; 0: it is no pod
  const std::string name_;
  agent::AgentCore core_;
  job::ExchangeRequest request_;
  std::vector<agent::WorkerAction> actions_;
  std::map<uint32_t, Worker> workers_;
  uint64_t lives_ = 0;
  job::Incarnation incarnation_;
  uint64_t run_ = 0;  // 0: not known yet
  Instant wake_at_ = Instant::max();
  bool exited_ = false;
};

}  // namespace parallelrun::simulation
