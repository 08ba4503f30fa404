// The operator's process, put together: schema check, operator key, informers, work queue, leader
// election, workers, servers. Made and run once, by main.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/thread.h"
#include "base/time.h"
#include "kube/client.h"
#include "kube/leader_election.h"
#include "operator/credentials.h"
#include "operator/health.h"
#include "operator/metrics.h"
#include "operator/options.h"
#include "operator/reconciler.h"

namespace parallelrun::operators {

// The operator's key from Secret parallelrun-operator-key; made if it is not there.
Result<OperatorKey> EnsureOperatorKey(kube::Client& client, const std::string& name_space);

class Operator {
 public:
  // `client` reports its requests to `metrics`; both must outlive it.
  Operator(ProcessOptions options, kube::Client& client, Metrics& metrics,
           std::shared_ptr<const Clock> clock);
  ~Operator();

  // Works until Stop (or SIGTERM, SIGINT), then ends what is in progress, gives the lease up and
  // returns, all within 30 s. The exit code. A lost lease ends the process at once.
  int Run();
  void Stop();

 private:
  bool WaitStop(Duration at_most);
  void SetNotReady(const std::string& why);
  std::string Ready() const;
  std::string Healthy() const;
  std::string MetricsText() const;
  bool WaitForSchema();
  std::optional<OperatorKey> WaitForKey();
  void StartInformers();
  bool WaitForCaches();
  bool WaitForLease();
  void Work(OperatorKey key);
  void RecheckSchema();
  void ShutDown();

  const ProcessOptions options_;
  kube::Client& client_;
  Metrics& metrics_;
  const std::shared_ptr<const Clock> clock_;

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  bool stop_ = false;
  bool leading_ = false;
  std::string not_ready_ = "starting";

  // Destroyed from the last to the first: the servers before what they show, the workers (joined by
  // ShutDown) before what they use.
  std::atomic<bool> fits_{true};  // the served schema, when it was last looked at
  std::atomic<bool> stopping_{false};
  kube::WorkQueue queue_;
  std::atomic<const JobInformer*> shown_{nullptr};  // jobs_, for the servers' thread
  std::unique_ptr<JobInformer> jobs_;
  std::unique_ptr<PodInformer> pods_;
  std::unique_ptr<CoordinatorPool> coordinators_;
  std::unique_ptr<kube::EventRecorder> events_;
  std::unique_ptr<Reconciler> reconciler_;
  std::unique_ptr<kube::LeaderElector> elector_;
  std::vector<Thread> workers_;
  std::unique_ptr<HealthServers> servers_;
};

}  // namespace parallelrun::operators
