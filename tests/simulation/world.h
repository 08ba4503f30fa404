// The simulated world of one seed: clock, events, network, disk, the actors and what goes wrong.
// Single-threaded; everything is decided by the seed.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/time.h"
#include "job/node_messages.h"
#include "tests/simulation/oracle.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/sim_input.h"
#include "tests/simulation/supervisor.h"
#include "tests/support/fault_files.h"

namespace parallelrun::simulation {

constexpr size_t kNobody = static_cast<size_t>(-1);

class SimAgent;
class SimCoordinator;

struct RunOutcome {
  std::string violation;  // empty: none
  uint64_t hash = 0;      // of all that happened: equal for equal seeds
  uint64_t events = 0;
  Duration time{};  // virtual
  bool job_over = false;
  bool succeeded = false;
  uint32_t epochs = 0;
  std::array<uint64_t, kFaults> faults{};
  // Processor time that coordinators took, where the scenario is timed: not part of the run.
  uint64_t coordinator_events = 0;
  Duration coordinating{};
  Duration longest{};
};

class World {
 public:
  World(const Scenario& scenario, bool trace);
  ~World();
  // `supervisor` must live on until the run has ended.
  RunOutcome Run(Supervisor& supervisor);

  const Scenario& scenario() const { return scenario_; }
  Instant now() const { return now_; }
  FaultRng& rng() { return rng_; }
  bool Chance(uint32_t of_1000) { return of_1000 > 0 && rng_.Below(1000) < of_1000; }
  Duration Around(Duration mean) {
    return Duration(1 + static_cast<int64_t>(rng_.Below(2 * static_cast<uint64_t>(mean.count()))));
  }
  // Of a process that starts now.
  OwnClock DrawClock();
  Oracle& oracle() { return oracle_; }
  FaultFiles& disk() { return disk_; }
  SimInput& input() { return input_; }
  bool faulty() const { return faulty_; }

  void After(Duration delay, std::function<void()> event);
  // Events of an actor wait while it is frozen, and are dropped once it is gone.
  void OnCoordinator(size_t id, Duration delay, std::function<void(SimCoordinator&)> event);
  void OnAgent(size_t id, Duration delay, std::function<void(SimAgent&)> event);

  // A call of an agent; `answered` is called on it at most once, with nothing when no answer came.
  struct Answer {
    enum class Kind { kReply, kRegistered, kStale, kBusy, kRefused, kNone };
    Kind kind = Kind::kNone;
    std::string bytes;             // kReply
    job::Incarnation incarnation;  // kRegistered
    uint32_t first_process = 0;
    uint64_t run = 0;
  };
  using Answered = std::function<void(SimAgent&, const Answer&)>;
  using Handler = std::function<void(SimCoordinator&, std::function<void(Answer)>)>;
  void Call(size_t agent, uint32_t node, Duration timeout, const Handler& handler,
            const Answered& answered);

  // For the supervisor. Ids are given in the order of the starts; of those that live no more there
  // is nothing.
  size_t StartCoordinator(const CoordinatorStart& start);
  size_t StartAgent(const AgentStart& start);
  SimCoordinator* coordinator(size_t id) { return coordinators_[id].get(); }
  SimAgent* agent(size_t id) { return agents_[id].get(); }
  size_t agents() const { return agents_.size(); }
  bool Serves(uint32_t node) const;  // an agent of it lives
  void KillCoordinator(size_t id);
  void KillAgent(size_t id);
  // Everything has ended as it should: the run is over.
  void JobOver(bool succeeded);

  // A person moves a foreign file away, and the output folder back.
  void PutInOrder();

  // For actors: their own end.
  void Exited(size_t coordinator, coordinator::CoordinatorExit exit);
  void AgentExited(size_t agent, agent::AgentEnd end);
  void AgentDies(size_t agent);  // without a word

  Duration Delay();  // of a message
  bool tracing() const { return trace_; }
  void Trace(const std::string& text) const;
  void Count(Fault fault) { ++outcome_.faults[static_cast<size_t>(fault)]; }

 private:
  struct Event {
    Instant at;
    uint64_t sequence = 0;
    std::function<void()> run;
  };
  struct Cut {
    bool out = false;
    bool in = false;
  };

  void Misbehave();
  void Do(Fault fault);
  void Heal();
  void LoseAgent(size_t id);
  void CrashMachine();
  void Sweep();
  size_t PickCoordinator(bool newest);
  size_t PickAgent();
  void FinalChecks();
  void RivalEnds();

  const Scenario scenario_;
  const bool trace_;
  FaultRng rng_;
  SimInput input_;
  Oracle oracle_;
  FaultFiles disk_;
  Instant now_{seconds(1000)};
  uint64_t sequence_ = 0;
  std::vector<Event> heap_;
  bool faulty_ = true;
  bool over_ = false;
  Supervisor* supervisor_ = nullptr;
  std::vector<std::unique_ptr<SimCoordinator>> coordinators_;
  std::vector<std::unique_ptr<SimAgent>> agents_;
  std::vector<std::vector<std::function<void()>>>
      connections_;  // by coordinator: broken at its end
  std::vector<Cut> cuts_;
  std::vector<size_t> routes_;  // by node: the coordinator that it talks to
  RunOutcome outcome_;
};

}  // namespace parallelrun::simulation
