// One job: observe (from the caches) -> plan (pure) -> apply -> write the status. What it remembers
// of a job between two calls only saves reads and keeps a stale cache from acting twice; the
// process may be killed at any moment.
//
// Thread-safe; the work queue gives one job to one worker at a time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/time.h"
#include "kube/client.h"
#include "kube/events.h"
#include "kube/informer.h"
#include "kube/work_queue.h"
#include "operator/apply.h"
#include "operator/coordinator_client.h"
#include "operator/metrics.h"
#include "operator/observed.h"
#include "operator/options.h"
#include "operator/plan/plan.h"

namespace parallelrun::operators {

struct HeldPod {
  std::string job_key;  // "namespace/name" of its controlling ParallelRunJob
  PodDigest pod;
};
using JobInformer = kube::Informer<ObservedJob>;
using PodInformer = kube::Informer<HeldPod>;

// For the informers. Nothing: not a pod of any ParallelRunJob.
std::optional<HeldPod> DigestHeldPod(const nlohmann::json& pod);

class Reconciler {
 public:
  // All must outlive it.
  struct Parts {
    kube::Client& client;
    const JobInformer& jobs;
    const PodInformer& pods;
    kube::WorkQueue& queue;
    CoordinatorPool& coordinators;
    kube::EventRecorder& events;
    Metrics& metrics;
  };
  Reconciler(Parts parts, OperatorOptions options, OperatorKey key,
             std::shared_ptr<const Clock> clock);

  // Never throws. Puts the key back into the queue when there is more to do.
  void Reconcile(const std::string& key);

 private:
  struct Memory;

  Metrics::Outcome Work(const std::string& key);
  std::shared_ptr<Memory> MemoryOf(const std::string& key, const ObservedJob& job);
  // After a failure that may pass: with back-off, but no later than `at_most` from now.
  void TryAgain(const std::string& key, Duration at_most);
  void Drop(const std::string& key);
  // Shortens the grace of nodes whose job is deleted. `job`: the one of that name, if there is one.
  void HurryNodesOfDeleted(const std::string& key, const JobInformer::Pointer& job) const;
  Observed Observe(const std::string& key, const ObservedJob& job, Memory& memory) const;
  std::optional<Plan> PlanWithFacts(const std::string& key, const ObservedJob& job,
                                    Memory& memory) const;
  void Pull(const std::string& key, const ObservedJob& job, const Plan& plan, Memory& memory);
  bool Remember(Applied& applied, Memory& memory) const;
  enum class Written { kYes, kStale, kFailed };
  Written WriteStatus(const ObservedJob& job, const Plan& plan, Memory& memory);
  void Emit(const ObservedJob& job, const Plan& plan);

  Parts parts_;
  const OperatorOptions options_;
  const std::shared_ptr<const Clock> clock_;
  Applier applier_;

  std::mutex mutex_;  // guards what follows; a Memory is its worker's
  std::map<std::string, std::shared_ptr<Memory>> memories_;
};

}  // namespace parallelrun::operators
