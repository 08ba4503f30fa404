// One operator process: the planner is the product's; what the informers, the reconciler and the
// pool of coordinator calls promise it (operator/observed.h) is kept here in a few lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "operator/plan/plan.h"
#include "tests/simulation/operator/api_server.h"

namespace parallelrun::simulation {

class Cluster;

class SimOperator {
 public:
  explicit SimOperator(Cluster& cluster) : cluster_(cluster) {}

  // Its memory is gone.
  void Restart();
  // What its watches, its timers and the coordinator's answers call for.
  void Step();
  uint64_t plans() const { return plans_; }

 private:
  // All that a restart forgets.
  struct Memory {
    size_t jobs_seen = 0, pods_seen = 0;  // how far its two watches have come
    std::map<std::string, operators::PodDigest> cache;
    std::map<std::string, std::pair<int64_t, operators::PodDigest>>
        made;           // until the cache shows them
    int64_t wrote = 0;  // version of its last status write
    std::map<operators::FactKey, operators::Fact> facts;
    std::map<std::string, operators::ApplyFailure> failures;
    bool due = true;  // something has changed
    std::optional<WallTime> wake;
    // Calls of the coordinator.
    std::optional<operators::PullRequest> watch;
    operators::CoordinatorView view;
    std::string significant;
    std::string control;  // to be sent
    bool in_flight = false;
    WallTime call_at{};
  };

  void CatchUp();
  operators::Observed See() const;
  bool Reconcile();  // false: it has died
  std::optional<operators::Plan> PlanWithFacts();
  void CheckPlan(const operators::Plan& plan) const;
  void Do(const operators::Action& action);
  void CreatePod(const operators::Action& action);
  void SnapshotCode();
  void Delete(const operators::Action& action);
  bool WriteStatus(const operators::Plan& plan);
  void Watch(const operators::Plan& plan);
  void CallCoordinator();
  void OnAnswer(const std::string& control, const std::optional<std::string>& progress);

  Cluster& cluster_;
  Memory memory_;
  uint64_t life_ = 0;  // tells answers for an earlier life
  uint64_t calls_ = 0;
  uint64_t plans_ = 0;
};

}  // namespace parallelrun::simulation
