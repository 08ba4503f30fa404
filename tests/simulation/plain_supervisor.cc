#include "tests/simulation/plain_supervisor.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "tests/simulation/sim_agent.h"
#include "tests/simulation/sim_coordinator.h"

namespace parallelrun::simulation {
namespace {

constexpr Duration kSupervise = milliseconds(500);

}  // namespace

PlainSupervisor::PlainSupervisor(World& world)
    : world_(world),
      scenario_(world.scenario()),
      wanted_(scenario_.nodes),
      finished_(scenario_.nodes) {}

void PlainSupervisor::Start() {
  for (uint32_t node = 0; node < scenario_.nodes; ++node) StartAgent(node);
  StartCoordinator();
  world_.After(kSupervise, [this] { Supervise(); });
}

void PlainSupervisor::StartCoordinator() {
  // Another one may have come between.
  newest_ =
      std::max(newest_, world_.StartCoordinator({uid_, if_exists_, access_, scenario_.nodes, 0}));
}

void PlainSupervisor::StartAgent(uint32_t node) {
  world_.StartAgent({node, access_, scenario_.pods ? ++last_pod_ : 0});
}

void PlainSupervisor::Supervise() {
  world_.After(kSupervise, [this] { Supervise(); });
  // It knows only of the one that it started last.
  if (!world_.coordinator(newest_) && (!world_.faulty() || world_.Chance(700))) StartCoordinator();
  if (!world_.faulty() || world_.Chance(20)) world_.PutInOrder();
  Tell();
  // Nodes that are not wanted any more drain, and are ended if that takes long.
  for (size_t id = 0; id < world_.agents(); ++id) {
    const SimAgent* const agent = world_.agent(id);
    if (agent != nullptr && agent->node() >= wanted_ && world_.Chance(10)) world_.KillAgent(id);
  }
  for (uint32_t node = 0; node < wanted_; ++node) {
    if (finished_[node] || world_.Serves(node)) continue;
    if (!world_.faulty() || world_.Chance(500)) StartAgent(node);
  }
}

// As the operator does again and again, until a coordinator has acknowledged it.
void PlainSupervisor::Tell() {
  if (!world_.coordinator(newest_) || (world_.faulty() && !world_.Chance(700))) return;
  coordinator::ControlRequest control;
  control.spec["nodeCount"] = wanted_;
  for (const auto& [node, end] : pod_ends_) control.pod_ends.push_back(end);
  world_.OnCoordinator(newest_, world_.Delay(), [control](SimCoordinator& running) {
    if (running.running()) running.Control(control);
  });
}

void PlainSupervisor::OnCoordinatorEnd(size_t, const SimCoordinator& coordinator,
                                       coordinator::CoordinatorExit exit) {
  if (coordinator.uid() != uid_) return;  // nobody asks any more how that job ended
  if (coordinator.refused()) {
    return NewJob({api::IfExists::kResume, api::IfExists::kOverwrite, api::IfExists::kOverwrite});
  }
  if (exit != coordinator::CoordinatorExit::kSucceeded &&
      exit != coordinator::CoordinatorExit::kFailed)
    return;
  const bool again = exit == coordinator::CoordinatorExit::kFailed || coordinator.failed_some() ||
                     world_.Chance(100);
  if (again && new_jobs_ < scenario_.new_jobs) {
    NewJob({api::IfExists::kRetryFailed, api::IfExists::kRetryFailed, api::IfExists::kResume,
            api::IfExists::kOverwrite, api::IfExists::kFail});
  } else {
    world_.JobOver(exit == coordinator::CoordinatorExit::kSucceeded);
  }
}

void PlainSupervisor::OnAgentEnd(size_t id, agent::AgentEnd end) {
  // With several jobs, it may have heard that from a coordinator of an earlier one.
  if (end == agent::AgentEnd::kFinished && new_jobs_ == 0)
    finished_[world_.agent(id)->node()] = true;
}

void PlainSupervisor::OnAgentKilled(size_t id) {
  const SimAgent& agent = *world_.agent(id);
  if (agent.pod() == 0) return;
  coordinator::PodEnd& end = pod_ends_[agent.node()];
  if (agent.pod() > end.incarnation) end = {agent.node(), agent.pod(), "Killed", 137};
}

bool PlainSupervisor::Do(Fault fault) {
  switch (fault) {
    case Fault::kSecondCoordinator: StartCoordinator(); return true;
    case Fault::kSecondAgent:
      StartAgent(static_cast<uint32_t>(world_.rng().Below(scenario_.nodes)));
      return true;
    case Fault::kScale:
      wanted_ = 1 + static_cast<uint32_t>(world_.rng().Below(scenario_.nodes));
      if (world_.tracing()) world_.Trace(fmt::format("{} nodes are wanted", wanted_));
      return true;
    case Fault::kNewJob:
      if (new_jobs_ >= scenario_.new_jobs) return false;
      NewJob({api::IfExists::kOverwrite, api::IfExists::kResume, api::IfExists::kFail});
      StartCoordinator();
      return true;
    default: return false;
  }
}

void PlainSupervisor::NewJob(std::initializer_list<api::IfExists> ways) {
  if_exists_ = ways.begin()[world_.rng().Below(ways.size())];
  uid_ = fmt::format("uid{}", ++new_jobs_);
  world_.Trace(fmt::format("a person applies {}, ifExists {}", uid_, static_cast<int>(if_exists_)));
  std::fill(finished_.begin(), finished_.end(), false);
  if (if_exists_ != api::IfExists::kOverwrite) return;
  // Nothing is kept: the input may be another one, and nodes of one job do not know the other's
  // key.
  world_.input().Grow(world_.rng().Next());
  ++access_;
}

}  // namespace parallelrun::simulation
