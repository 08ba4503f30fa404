#include "operator/metrics.h"

#include <prometheus/text_serializer.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>

#include "base/version.h"

namespace parallelrun::operators {
namespace {

using prometheus::BuildCounter;
using prometheus::BuildGauge;
using prometheus::BuildHistogram;
using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Labels;
using Buckets = prometheus::Histogram::BucketBoundaries;

constexpr char kController[] = "parallelrunjob";
constexpr Duration kEndIsNews = std::chrono::hours(1);
constexpr size_t kMostNotices = 500;
constexpr const char* kPhases[] = {"Pending",   "Starting", "Running",  "Finalizing",
                                   "Succeeded", "Failed",   "Suspended"};

Labels QueueLabels() { return {{"name", kController}, {"controller", kController}}; }

// controller-runtime's boundaries.
Buckets ReconcileBuckets() {
  return {0.005, 0.01, 0.025, 0.05, 0.1,  0.15, 0.2,  0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6,
          0.7,   0.8,  0.9,   1,    1.25, 1.5,  1.75, 2,    2.5, 3,    3.5, 4,    4.5, 5,
          6,     7,    8,     9,    10,   15,   20,   25,   30,  40,   50,  60};
}
Buckets QueueBuckets() { return {1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1, 10, 100, 1000}; }

Family<Gauge>& AddGauge(prometheus::Registry& registry, const char* name, const char* help) {
  return BuildGauge().Name(name).Help(help).Register(registry);
}
Family<Counter>& AddCounter(prometheus::Registry& registry, const char* name, const char* help) {
  return BuildCounter().Name(name).Help(help).Register(registry);
}
prometheus::Histogram& AddHistogram(prometheus::Registry& registry, const char* name,
                                    const char* help, const Labels& labels,
                                    const Buckets& buckets) {
  return BuildHistogram().Name(name).Help(help).Register(registry).Add(labels, buckets);
}

const char* HttpMethod(const std::string& verb) {
  if (verb == "create") return "POST";
  if (verb == "update") return "PUT";
  if (verb == "apply" || verb == "patch") return "PATCH";
  if (verb == "delete") return "DELETE";
  return "GET";
}

const char* OutcomeName(Metrics::Outcome outcome) {
  switch (outcome) {
    case Metrics::Outcome::kSuccess: return "success";
    case Metrics::Outcome::kRequeueAfter: return "requeue_after";
    case Metrics::Outcome::kError: return "error";
  }
  return "error";
}

std::string ReasonOf(const JobStatus& status, const char* type) {
  const Condition* condition = status.Find(type);
  return condition == nullptr ? "" : condition->reason;
}

// What a container ended with came from its host: no more than a word becomes a series.
std::string Word(const std::string& cause) {
  const bool word = !cause.empty() && cause.size() <= 40 &&
                    std::all_of(cause.begin(), cause.end(),
                                [](unsigned char c) { return c < 0x80 && std::isalnum(c) != 0; });
  return word ? cause : "Other";
}

using NoticeOf = std::optional<JobFigures::Notice> JobFigures::*;

// The newest ones, so that a thousand jobs with one cause do not become as many series for long.
void AddNotices(Family<Gauge>& family, const std::vector<JobFigures>& jobs, NoticeOf which,
                WallTime since) {
  std::vector<const JobFigures*> told;
  for (const JobFigures& job : jobs) {
    if (job.*which && (job.*which)->at >= since) told.push_back(&job);
  }
  std::sort(told.begin(), told.end(), [which](const JobFigures* a, const JobFigures* b) {
    return (a->*which)->at > (b->*which)->at;
  });
  if (told.size() > kMostNotices) told.resize(kMostNotices);
  for (const JobFigures* job : told) {
    const JobFigures::Notice& notice = *(job->*which);
    family.Add({{"namespace", job->name_space}, {"job_name", job->name}, {"reason", notice.reason}})
        .Set(ToSeconds(notice.at.time_since_epoch()));
  }
}

}  // namespace

Metrics::Metrics(const std::string& host, int workers)
    : host_(host),
      requests_(AddCounter(registry_, "rest_client_requests_total",
                           "Requests to the API server by status code, method and host.")),
      reconciles_(AddCounter(registry_, "controller_runtime_reconcile_total",
                             "Reconciliations by controller and result.")),
      reconcile_errors_(AddCounter(registry_, "controller_runtime_reconcile_errors_total",
                                   "Reconciliations that failed.")
                            .Add({{"controller", kController}})),
      reconcile_time_(AddHistogram(registry_, "controller_runtime_reconcile_time_seconds",
                                   "Time of a reconciliation.", {{"controller", kController}},
                                   ReconcileBuckets())),
      queue_adds_(AddCounter(registry_, "workqueue_adds_total", "Keys added to the work queue.")
                      .Add(QueueLabels())),
      queue_retries_(AddCounter(registry_, "workqueue_retries_total", "Retries after failures.")
                         .Add(QueueLabels())),
      queue_depth_(AddGauge(registry_, "workqueue_depth", "Keys that wait.").Add(QueueLabels())),
      queue_time_(AddHistogram(registry_, "workqueue_queue_duration_seconds",
                               "How long a key waited.", QueueLabels(), QueueBuckets())),
      work_time_(AddHistogram(registry_, "workqueue_work_duration_seconds",
                              "How long a key was worked on.", QueueLabels(), QueueBuckets())),
      leading_(AddGauge(registry_, "leader_election_master_status",
                        "1 while this process leads, 0 while it waits for the lease.")
                   .Add({{"name", "parallelrun-operator"}})),
      finished_(AddCounter(registry_, "parallelrun_jobs_finished_total",
                           "Jobs that ended, by result and reason.")),
      restarts_(AddCounter(registry_, "parallelrun_node_restarts_total",
                           "Nodes that failed because of what the job itself did, by cause.")),
      disruptions_(AddCounter(registry_, "parallelrun_node_disruptions_total",
                              "Nodes replaced because of preemption, eviction and lost hosts.")),
      node_seconds_(
          AddCounter(registry_, "parallelrun_node_seconds_total", "Time that nodes of jobs ran.")),
      gpu_seconds_(AddCounter(registry_, "parallelrun_gpu_seconds_total",
                              "The same, times the GPUs of a node.")) {
  AddGauge(registry_, "parallelrun_build_info", "1, with the version.")
      .Add({{"version", kVersion}})
      .Set(1);
  AddGauge(registry_, "controller_runtime_max_concurrent_reconciles", "Reconcile workers.")
      .Add({{"controller", kController}})
      .Set(workers);
  for (const Outcome outcome : {Outcome::kSuccess, Outcome::kRequeueAfter, Outcome::kError}) {
    reconciles_.Add({{"controller", kController}, {"result", OutcomeName(outcome)}});
  }
}

kube::WorkQueueHooks Metrics::QueueHooks() {
  kube::WorkQueueHooks hooks;
  hooks.added = [this] { queue_adds_.Increment(); };
  hooks.retried = [this] { queue_retries_.Increment(); };
  hooks.depth = [this](size_t depth) { queue_depth_.Set(static_cast<double>(depth)); };
  hooks.waited = [this](Duration waited) { queue_time_.Observe(ToSeconds(waited)); };
  hooks.worked = [this](Duration worked) { work_time_.Observe(ToSeconds(worked)); };
  return hooks;
}

void Metrics::Requested(const kube::RequestDone& done) {
  requests_
      .Add({{"code", done.status == 0 ? "<error>" : std::to_string(done.status)},
            {"method", HttpMethod(done.verb)},
            {"host", host_}})
      .Increment();
}

void Metrics::Leading(bool leading) { leading_.Set(leading ? 1 : 0); }

void Metrics::StatusWritten(const std::string& name_space, const JobStatus& before,
                            const Plan& plan) {
  const JobStatus& after = plan.status;
  if (!before.Over() && after.Over()) {
    const bool succeeded = after.Is("Complete");
    finished_
        .Add({{"namespace", name_space},
              {"result", succeeded ? "succeeded" : "failed"},
              {"reason", ReasonOf(after, succeeded ? "Complete" : "Failed")}})
        .Increment();
  }
  const auto count = [&](Family<Counter>& family, int64_t more) {
    // From the first job on, also where there is nothing to count: a rate has two points then.
    if (more >= 0) family.Add({{"namespace", name_space}}).Increment(static_cast<double>(more));
  };
  for (const std::string& cause : plan.failed_nodes) {
    restarts_.Add({{"namespace", name_space}, {"reason", Word(cause)}}).Increment();
  }
  count(disruptions_, after.nodes.disruptions - before.nodes.disruptions);
  count(node_seconds_, after.usage.node_seconds - before.usage.node_seconds);
  count(gpu_seconds_, after.usage.gpu_seconds - before.usage.gpu_seconds);
}

Metrics::Reconcile::Reconcile(Metrics& metrics, const Clock& clock)
    : metrics_(metrics), clock_(clock), begun_(clock.Now()) {
  const std::lock_guard lock(metrics_.mutex_);
  metrics_.active_.insert(begun_);
}

Metrics::Reconcile::~Reconcile() {
  metrics_.reconcile_time_.Observe(ToSeconds(clock_.Now() - begun_));
  metrics_.reconciles_.Add({{"controller", kController}, {"result", OutcomeName(outcome)}})
      .Increment();
  if (outcome == Outcome::kError) metrics_.reconcile_errors_.Increment();
  const std::lock_guard lock(metrics_.mutex_);
  metrics_.active_.erase(metrics_.active_.find(begun_));
}

JobFigures FiguresOf(const ObservedJob& job) {
  const JobStatus& status = job.status;
  JobFigures out;
  out.name_space = job.name_space;
  out.name = job.name;
  out.phase = status.phase;
  if (status.progress) {
    out.succeeded = status.progress->succeeded;
    out.failed = status.progress->failed;
    out.running = status.progress->running;
  }
  out.nodes = status.nodes;
  const WallTime ended = status.completion_time.value_or(WallTime{});
  if (status.Is("Failed")) {
    out.failed_job = {ended, ReasonOf(status, "Failed")};
  } else if (ReasonOf(status, "Complete") == kCompletedWithFailures) {
    out.lost_items = {ended, ReasonOf(status, "Complete")};
  } else if (!status.Over() &&
             (out.phase.empty() || out.phase == "Pending" || out.phase == "Starting")) {
    const Condition* const accepted = status.Find("Accepted");
    const bool invalid = accepted != nullptr && accepted->status == Truth::kFalse;
    out.waits = {status.start_time.value_or(job.created),
                 ReasonOf(status, invalid ? "Accepted" : "NodesReady")};
  }
  return out;
}

std::string Metrics::Text(const std::vector<JobFigures>& jobs, bool per_job, Instant now,
                          WallTime wall) {
  prometheus::Registry scrape;
  std::map<std::string, std::map<std::string, int>> phases;
  for (const JobFigures& job : jobs) {
    ++phases[job.name_space][job.phase.empty() ? "Pending" : job.phase];
  }
  auto& by_phase = AddGauge(scrape, "parallelrun_jobs", "Jobs by namespace and phase.");
  for (auto& [name_space, counts] : phases) {
    for (const char* phase : kPhases) {
      by_phase.Add({{"namespace", name_space}, {"phase", phase}}).Set(counts[phase]);
    }
  }
  AddNotices(AddGauge(scrape, "parallelrun_job_failure_time_seconds",
                      "When a job failed, for an hour, with the reason."),
             jobs, &JobFigures::failed_job, wall - kEndIsNews);
  AddNotices(AddGauge(scrape, "parallelrun_job_loss_time_seconds",
                      "When a job ended with items that have no row, for an hour."),
             jobs, &JobFigures::lost_items, wall - kEndIsNews);
  AddNotices(AddGauge(scrape, "parallelrun_job_wait_start_time_seconds",
                      "Since when a job waits for its first node, with the reason."),
             jobs, &JobFigures::waits, WallTime{});
  if (per_job) {
    auto& phase = AddGauge(scrape, "parallelrun_job_phase", "1 for the phase of a job.");
    auto& batches = AddGauge(scrape, "parallelrun_job_mini_batches", "Mini-batches by state.");
    auto& nodes = AddGauge(scrape, "parallelrun_job_nodes", "Nodes wanted and ready.");
    auto& restarts = AddGauge(scrape, "parallelrun_job_node_restarts",
                              "Nodes replaced because of what the job itself did.");
    for (const JobFigures& job : jobs) {
      const auto set = [&job](Family<Gauge>& family, Labels labels, int64_t value) {
        labels["namespace"] = job.name_space;
        labels["job_name"] = job.name;
        family.Add(labels).Set(static_cast<double>(value));
      };
      set(phase, {{"phase", job.phase}}, 1);
      set(batches, {{"state", "succeeded"}}, job.succeeded);
      set(batches, {{"state", "failed"}}, job.failed);
      set(batches, {{"state", "running"}}, job.running);
      set(nodes, {{"state", "desired"}}, job.nodes.desired);
      set(nodes, {{"state", "ready"}}, job.nodes.ready);
      set(restarts, {}, job.nodes.restarts);
    }
  }
  Duration longest{};
  Duration sum{};
  size_t active = 0;
  {
    const std::lock_guard lock(mutex_);
    active = active_.size();
    for (const Instant begun : active_) {
      sum += now - begun;
      longest = std::max(longest, now - begun);
    }
  }
  AddGauge(scrape, "controller_runtime_active_workers", "Reconciliations in progress.")
      .Add({{"controller", kController}})
      .Set(static_cast<double>(active));
  AddGauge(scrape, "workqueue_unfinished_work_seconds", "Age of all work in progress together.")
      .Add(QueueLabels())
      .Set(ToSeconds(sum));
  AddGauge(scrape, "workqueue_longest_running_processor_seconds", "Age of the oldest work.")
      .Add(QueueLabels())
      .Set(ToSeconds(longest));
  const prometheus::TextSerializer serializer;
  return serializer.Serialize(registry_.Collect()) + serializer.Serialize(scrape.Collect());
}

}  // namespace parallelrun::operators
