// What the operator tells Prometheus. Names are controller-runtime's where the thing is the same,
// so that stock dashboards and alerts work. Thread-safe.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/time.h"
#include "kube/client.h"
#include "kube/work_queue.h"
#include "operator/observed.h"
#include "operator/plan/plan.h"
#include "operator/status/status.h"

namespace parallelrun::operators {

// A job as the cache has it, for gauges that are made at each scrape, so that a job that is gone
// leaves nothing behind.
struct JobFigures {
  std::string name_space, name, phase;
  int64_t succeeded = 0, failed = 0, running = 0;  // mini-batches
  NodeCounts nodes;

  // What an alert is to name, for as long as somebody may have to act on it.
  struct Notice {
    WallTime at{};
    std::string reason;  // of the condition
  };
  std::optional<Notice> failed_job, lost_items;  // since it ended
  std::optional<Notice> waits;  // since it was to start: no node has been ready yet
};
JobFigures FiguresOf(const ObservedJob& job);

class Metrics {
 public:
  // `host` is the API server's, for rest_client_requests_total.
  Metrics(const std::string& host, int workers);

  kube::WorkQueueHooks QueueHooks();
  // To kube::ClientOptions::on_request.
  void Requested(const kube::RequestDone& done);
  void Leading(bool leading);
  // The status of a plan was written, in place of `before`.
  void StatusWritten(const std::string& name_space, const JobStatus& before, const Plan& plan);

  enum class Outcome { kSuccess, kRequeueAfter, kError };
  // One reconcile, from its construction to its destruction.
  class Reconcile {
   public:
    Reconcile(Metrics& metrics, const Clock& clock);
    ~Reconcile();
    Reconcile(const Reconcile&) = delete;
    Reconcile& operator=(const Reconcile&) = delete;
    Outcome outcome = Outcome::kSuccess;

   private:
    Metrics& metrics_;
    const Clock& clock_;
    const Instant begun_;
  };

  // Prometheus text. `per_job`: gauges for each of `jobs`, too; else jobs are named only in
  // notices, at most 500 of a kind, ends for an hour.
  std::string Text(const std::vector<JobFigures>& jobs, bool per_job, Instant now, WallTime wall);

 private:
  prometheus::Registry registry_;
  const std::string host_;
  prometheus::Family<prometheus::Counter>& requests_;
  prometheus::Family<prometheus::Counter>& reconciles_;
  prometheus::Counter& reconcile_errors_;
  prometheus::Histogram& reconcile_time_;
  prometheus::Counter& queue_adds_;
  prometheus::Counter& queue_retries_;
  prometheus::Gauge& queue_depth_;
  prometheus::Histogram& queue_time_;
  prometheus::Histogram& work_time_;
  prometheus::Gauge& leading_;
  prometheus::Family<prometheus::Counter>& finished_;
  prometheus::Family<prometheus::Counter>& restarts_;
  prometheus::Family<prometheus::Counter>& disruptions_;
  prometheus::Family<prometheus::Counter>& node_seconds_;
  prometheus::Family<prometheus::Counter>& gpu_seconds_;

  std::mutex mutex_;
  std::multiset<Instant> active_;  // when the reconciles in progress began
};

}  // namespace parallelrun::operators
