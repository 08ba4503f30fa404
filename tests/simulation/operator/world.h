// One job, the API server, operators with caches that lag, a kubelet, a coordinator and a user, on
// a simulated clock. A seed is a whole run. The planner is the product's; the reconciler's promises
// (operator/observed.h) are kept by SimOperator in a few lines.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "operator/plan.h"

namespace parallelrun {

// The job as the API server stores it; `spec` fields that change while it runs.
struct StoredJob {
  int64_t version = 0;  // resourceVersion
  int64_t generation = 1;
  int32_t node_count = 1;
  bool suspend = false, cancel = false, deleting = false;
  JobStatus status;
};

struct PodChange {
  int64_t version = 0;
  std::string name;
  std::optional<PodDigest> pod;  // none: it is gone
};

// What lies on the volume, and the coordinator that owns it at the moment.
struct Ledger {
  int64_t total = 10, settled = 0;
  bool will_fail = false;
  std::optional<bool> verdict;  // succeeded
  bool canceled = false;
  std::string owner;  // uid of the pod
  int64_t control_generation = 0;
  int32_t node_count = 0;
};

struct SimOperator {
  size_t jobs_seen = 0, pods_seen = 0;  // how far its two watches have come
  std::map<std::string, PodDigest> cache;
  std::map<std::string, std::pair<int64_t, PodDigest>> made;  // until the cache shows them
  int64_t wrote = 0;                                          // version of its last status write
  std::map<FactKey, Fact> facts;
  std::map<std::string, ApplyFailure> failures;
  CoordinatorView view;
  std::optional<WallTime> wake;
};

class OperatorWorld {
 public:
  OperatorWorld(uint64_t seed, bool trace);
  // Faults for a while, then none until the job is over. What was violated, or "".
  std::string Run();
  uint64_t plans() const { return plans_; }

 private:
  bool Chance(double p) { return std::uniform_real_distribution<>(0, 1)(random_) < p; }
  int Below(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  void Trace(const std::string& text) const;
  void Violated(const std::string& what);

  // The API server.
  StoredJob& job() { return jobs_.back(); }
  void StoreJob(StoredJob changed);
  void StorePod(PodDigest pod);
  void RemovePod(const std::string& name);
  void CheckPods();

  // An operator's turn.
  void Restart(SimOperator& one);
  void CatchUp(SimOperator& one);
  Observed See(const SimOperator& one) const;
  void Turn(SimOperator& one, bool faults);
  bool Do(SimOperator& one, const Action& action, bool faults);
  void CreatePod(SimOperator& one, const Action& action, bool faults);
  void WriteStatus(SimOperator& one, const Plan& plan, const StoredJob& based_on);
  void Pull(SimOperator& one);
  void Control(SimOperator& one, const Action& action);
  void CheckPlan(const Plan& plan, const StoredJob& seen);

  // Everybody else's.
  void Kubelet(bool faults);
  void StepPod(PodDigest pod, bool faults);
  void EndPod(PodDigest& pod, int exit_code, const std::string& reason);
  void WorkOn(const PodDigest& coordinator, bool faults);
  void User();
  bool Settled() const;
  std::string AfterTheEnd();
  std::string CheckEnd() const;

  std::mt19937_64 random_;
  const bool trace_;
  const bool two_operators_;  // both believe to lead, for the time of the faults
  WallTime now_;
  int64_t version_ = 1;
  uint64_t plans_ = 0;
  int next_uid_ = 1;
  ParsedJob parsed_;
  OperatorOptions options_;
  std::vector<StoredJob> jobs_;  // every version
  std::vector<PodChange> changes_;
  std::map<std::string, PodDigest> pods_;
  std::set<std::string> ran_;  // pods that a status was written after, which saw them run
  std::map<std::string, WallTime> removed_at_;  // when a terminating pod goes, if ever
  std::set<std::string> dead_;                  // pods on machines that died
  std::map<FactKey, Fact> objects_;
  Ledger ledger_;
  SimOperator operators_[2];
  int64_t own_failures_ = 0;  // ends of nodes that count
  bool code_there_ = true;
  std::string violation_;
};

}  // namespace parallelrun
