// What Prometheus reads: names and labels that dashboards and alerts use, and what counts when.
#include "operator/metrics.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "operator/process_usage.h"

namespace parallelrun::operators {
namespace {

constexpr Instant kNow{seconds(1000)};
constexpr WallTime kWall{seconds(1'000'000)};

// The value of a series, written as Prometheus does; -1: it is not there.
double Value(const std::string& text, const std::string& series) {
  const size_t at = text.find("\n" + series + " ");
  return at == std::string::npos ? -1 : std::stod(text.substr(at + series.size() + 2));
}

Plan PlanOf(JobStatus status) {
  Plan plan;
  plan.status = std::move(status);
  return plan;
}

JobStatus EndedWith(const char* type, const char* reason) {
  JobStatus status;
  SetCondition(status, type, Truth::kTrue, reason, "", 1, WallTime{});
  return status;
}

TEST(OperatorMetrics, RequestsAreCountedByCodeAndMethod) {
  Metrics metrics("api.example", 8);
  metrics.Requested({"apply", "parallelrunjobs.parallelrun.dev", 200, seconds(1)});
  metrics.Requested({"create", "pods", 0, seconds(1)});
  const std::string text = metrics.Text({}, false, kNow, kWall);
  EXPECT_EQ(
      Value(text, R"(rest_client_requests_total{code="200",host="api.example",method="PATCH"})"),
      1);
  EXPECT_EQ(
      Value(text, R"(rest_client_requests_total{code="<error>",host="api.example",method="POST"})"),
      1);
  EXPECT_EQ(
      Value(text, R"(controller_runtime_max_concurrent_reconciles{controller="parallelrunjob"})"),
      8);
}

TEST(OperatorMetrics, AnEndIsCountedWhenItIsFirstWritten) {
  Metrics metrics("h", 1);
  const JobStatus failed = EndedWith("Failed", "NothingSucceeded");
  metrics.StatusWritten("team", {}, PlanOf(failed));
  metrics.StatusWritten("team", failed, PlanOf(failed));
  metrics.StatusWritten("team", {}, PlanOf(EndedWith("Complete", "Completed")));
  const std::string text = metrics.Text({}, false, kNow, kWall);
  EXPECT_EQ(
      Value(
          text,
          R"(parallelrun_jobs_finished_total{namespace="team",reason="NothingSucceeded",result="failed"})"),
      1);
  EXPECT_EQ(
      Value(
          text,
          R"(parallelrun_jobs_finished_total{namespace="team",reason="Completed",result="succeeded"})"),
      1);
}

TEST(OperatorMetrics, WhatNodesUsedGrowsByTheDifference) {
  Metrics metrics("h", 1);
  JobStatus before;
  before.nodes.disruptions = 2;
  before.usage.node_seconds = 100;
  JobStatus after = before;
  after.nodes.disruptions = 3;
  after.usage.node_seconds = 160;
  after.usage.gpu_seconds = 240;
  metrics.StatusWritten("team", before, PlanOf(after));
  metrics.StatusWritten("team", after, PlanOf(after));
  const std::string text = metrics.Text({}, false, kNow, kWall);
  EXPECT_EQ(Value(text, R"(parallelrun_node_disruptions_total{namespace="team"})"), 1);
  EXPECT_EQ(Value(text, R"(parallelrun_node_seconds_total{namespace="team"})"), 60);
  EXPECT_EQ(Value(text, R"(parallelrun_gpu_seconds_total{namespace="team"})"), 240);
}

TEST(OperatorMetrics, NodesThatFailedAreCountedByCause) {
  Metrics metrics("h", 1);
  Plan plan;
  plan.failed_nodes = {"AgentGaveUp", "Killed", "AgentGaveUp", "no\nword"};
  metrics.StatusWritten("team", {}, plan);
  metrics.StatusWritten("team", {}, Plan());
  const std::string text = metrics.Text({}, false, kNow, kWall);
  const auto count = [&](const char* cause) {
    return Value(text, std::string(R"(parallelrun_node_restarts_total{namespace="team",reason=")") +
                           cause + "\"}");
  };
  EXPECT_EQ(count("AgentGaveUp"), 2);
  EXPECT_EQ(count("Killed"), 1);
  EXPECT_EQ(count("Other"), 1);
}

TEST(OperatorMetrics, TheOperatorTellsWhatItUses) {
  const std::string text = "\n" + ProcessText({1.5, 17'000'000});
  EXPECT_EQ(Value(text, "process_cpu_seconds_total"), 1.5);
  EXPECT_EQ(Value(text, "process_resident_memory_bytes"), 17'000'000);
  const ProcessUsage own = OwnUsage();
  EXPECT_GT(own.cpu_seconds, 0);
  EXPECT_GT(own.resident_bytes, 1e6);
  EXPECT_LT(own.resident_bytes, 64e9);
}

TEST(OperatorMetrics, AJobThatIsGoneLeavesNothingBehind) {
  Metrics metrics("h", 1);
  JobFigures job;
  job.name_space = "team";
  job.name = "digits";
  job.phase = "Running";
  job.succeeded = 7;
  job.nodes.desired = 3;
  const std::string with = metrics.Text({job}, true, kNow, kWall);
  EXPECT_EQ(Value(with, R"(parallelrun_jobs{namespace="team",phase="Running"})"), 1);
  EXPECT_EQ(Value(with, R"(parallelrun_jobs{namespace="team",phase="Failed"})"), 0);
  EXPECT_EQ(
      Value(
          with,
          R"(parallelrun_job_mini_batches{job_name="digits",namespace="team",state="succeeded"})"),
      7);
  EXPECT_EQ(
      Value(with, R"(parallelrun_job_nodes{job_name="digits",namespace="team",state="desired"})"),
      3);
  EXPECT_EQ(metrics.Text({job}, false, kNow, kWall).find("digits"), std::string::npos)
      << "the switch is off";
  EXPECT_EQ(metrics.Text({}, true, kNow, kWall).find("digits"), std::string::npos);
}

ObservedJob JobWith(const char* name, JobStatus status) {
  ObservedJob job;
  job.name_space = "team";
  job.name = name;
  job.created = kWall - seconds(5000);
  job.status = std::move(status);
  return job;
}

TEST(OperatorMetrics, WhatAnAlertNamesIsThereForAnHour) {
  Metrics metrics("h", 1);
  JobStatus failed = EndedWith("Failed", "NothingSucceeded");
  failed.completion_time = kWall - seconds(3500);
  JobStatus old = failed;
  old.completion_time = kWall - seconds(3700);
  JobStatus lost = EndedWith("Complete", "CompletedWithFailures");
  lost.completion_time = kWall - seconds(60);
  JobStatus well = EndedWith("Complete", "Completed");
  well.completion_time = kWall;
  const std::string text =
      metrics.Text({FiguresOf(JobWith("bad", failed)), FiguresOf(JobWith("old", old)),
                    FiguresOf(JobWith("lossy", lost)), FiguresOf(JobWith("well", well))},
                   false, kNow, kWall);
  EXPECT_EQ(
      Value(
          text,
          R"(parallelrun_job_failure_time_seconds{job_name="bad",namespace="team",reason="NothingSucceeded"})"),
      996'500);
  EXPECT_EQ(
      Value(
          text,
          R"(parallelrun_job_loss_time_seconds{job_name="lossy",namespace="team",reason="CompletedWithFailures"})"),
      999'940);
  EXPECT_EQ(text.find("\"old\""), std::string::npos);
  EXPECT_EQ(text.find("\"well\""), std::string::npos);
}

TEST(OperatorMetrics, AJobThatWaitsIsNamedWithWhatItWaitsFor) {
  Metrics metrics("h", 1);
  JobStatus waits;
  waits.phase = "Starting";
  waits.start_time = kWall - seconds(4000);
  SetCondition(waits, "NodesReady", Truth::kFalse, "Unschedulable", "", 1, kWall);
  JobStatus invalid;
  invalid.phase = "Pending";
  SetCondition(invalid, "Accepted", Truth::kFalse, "Invalid", "", 1, kWall);
  JobStatus runs;
  runs.phase = "Running";
  const std::string text =
      metrics.Text({FiguresOf(JobWith("waits", waits)), FiguresOf(JobWith("invalid", invalid)),
                    FiguresOf(JobWith("runs", runs))},
                   false, kNow, kWall);
  EXPECT_EQ(
      Value(
          text,
          R"(parallelrun_job_wait_start_time_seconds{job_name="waits",namespace="team",reason="Unschedulable"})"),
      996'000);
  EXPECT_EQ(
      Value(
          text,
          R"(parallelrun_job_wait_start_time_seconds{job_name="invalid",namespace="team",reason="Invalid"})"),
      995'000);
  EXPECT_EQ(text.find("\"runs\""), std::string::npos);
}

TEST(OperatorMetrics, ThousandsWithOneCauseAreNotAllNamed) {
  Metrics metrics("h", 1);
  std::vector<JobFigures> jobs;
  for (int i = 0; i < 600; ++i) {
    JobStatus failed = EndedWith("Failed", "NothingSucceeded");
    failed.completion_time = kWall - seconds(i);
    jobs.push_back(FiguresOf(JobWith(("job-" + std::to_string(i)).c_str(), failed)));
  }
  const std::string text = metrics.Text(jobs, false, kNow, kWall);
  EXPECT_NE(text.find("\"job-499\""), std::string::npos) << "the newest are";
  EXPECT_EQ(text.find("\"job-500\""), std::string::npos);
}

TEST(OperatorMetrics, WorkInProgressHasAnAge) {
  Metrics metrics("h", 1);
  const SystemClock clock;
  {
    Metrics::Reconcile one(metrics, clock);
    const std::string text = metrics.Text({}, false, clock.Now() + seconds(30), kWall);
    EXPECT_EQ(Value(text, R"(controller_runtime_active_workers{controller="parallelrunjob"})"), 1);
    EXPECT_GE(
        Value(
            text,
            R"(workqueue_longest_running_processor_seconds{controller="parallelrunjob",name="parallelrunjob"})"),
        30);
    one.outcome = Metrics::Outcome::kError;
  }
  const std::string text = metrics.Text({}, false, clock.Now(), kWall);
  EXPECT_EQ(Value(text, R"(controller_runtime_active_workers{controller="parallelrunjob"})"), 0);
  EXPECT_EQ(
      Value(text, R"(controller_runtime_reconcile_errors_total{controller="parallelrunjob"})"), 1);
  EXPECT_EQ(
      Value(text,
            R"(controller_runtime_reconcile_total{controller="parallelrunjob",result="error"})"),
      1);
}

}  // namespace
}  // namespace parallelrun::operators
