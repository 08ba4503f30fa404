// The log tree on a disk that fails, fills up and forgets: what goes wrong is told, a report is
// whole or the one of before, and nothing half-written keeps a name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "coordinator/log_tree/batch_report.h"
#include "coordinator/log_tree/failed_items.h"
#include "coordinator/log_tree/log_sink.h"
#include "coordinator/log_tree/reports.h"
#include "tests/support/fault_files.h"
#include "tests/unit/coordinator/core_harness.h"

namespace parallelrun::coordinator {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kLogs[] = "/job/logs";

// All that a coordinator does there in its life.
Status WriteAll(Files& files, const job::JobState& state, const ledger::Ledger& ledger,
                plan::PlanStore& plan) {
  Result<LogSink> sink = LogSink::Open(files, kLogs);
  if (!sink.ok()) return sink.error();
  const job::FailureRules rules;
  const Status steps[] = {sink->Write(0, {"user", "stdout", "0", "a.txt"}, 0, "first\n"),
                          sink->Write(0, {"user", "stdout", "0", "a.txt"}, 6, "second\n"),
                          sink->folder().Append("user/metrics.jsonl", "{}\n"),
                          WriteReports(state, rules, plan, sink->folder()),
                          WriteBatchReports(ledger, state, rules, sink->folder()),
                          WriteFailedItems(ledger, state, rules, plan, sink->folder(), true)};
  for (const Status& step : steps) {
    if (!step.ok()) return step;
  }
  return {};
}

struct LogWay {
  const char* name;
  FaultMoment moment;
  CrashMode crash;
};

class LogFaultsTest : public ::testing::TestWithParam<LogWay> {};

TEST_P(LogFaultsTest, EveryOperationFailsOnceAndAReportIsWholeOrNone) {
  const LogWay way = GetParam();
  std::string report;
  std::string batches;
  for (uint64_t n = 1;; ++n) {
    CoordinatorHarness job;
    FaultFiles& files = job.files;
    plan::PlanStore plan(*job.ledger);
    const uint64_t before = files.operations();
    if (n > 1) files.FailOperation(n - 1, Error{Code::kNoSpace, "injected"}, way.moment);
    const Status written = WriteAll(files, job.state, *job.ledger, plan);
    const bool untouched = files.operations() - before < n - 1;
    files.ClearFaults();
    if (n == 1) {
      ASSERT_TRUE(written.ok()) << written.error().message;
      report = files.Contents("/job/logs/job_result.txt");
      batches = files.Contents("/job/logs/sys/job_report/processed_mini-batches.csv");
      continue;
    }
    if (untouched) {
      EXPECT_TRUE(written.ok());
      EXPECT_GT(n, 60U);
      break;
    }
    const auto names = files.List("/job/logs");
    if (names.ok()) {
      EXPECT_THAT(*names, Each(Not(HasSubstr(".tmp-")))) << n;
    }
    files.Crash(way.crash);
    // Published and synced, or not there: a crash leaves no half of it.
    for (const auto& [name, whole] :
         {std::pair<std::string, const std::string&>{"/job/logs/job_result.txt", report},
          {"/job/logs/sys/job_report/processed_mini-batches.csv", batches}}) {
      if (files.Has(name)) {
        EXPECT_EQ(files.Contents(name), whole) << n;
      }
    }
    // And the next epoch can do it all over again.
    const Status again = WriteAll(files, job.state, *job.ledger, plan);
    EXPECT_TRUE(again.ok()) << n << ": " << again.error().message;
    EXPECT_EQ(files.Contents("/job/logs/user/stdout/0/a.txt"), "first\nsecond\n") << n;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Ways, LogFaultsTest,
    ::testing::Values(LogWay{"LoseAll", FaultMoment::kBefore, CrashMode::kLoseAll},
                      LogWay{"LoseSome", FaultMoment::kBefore, CrashMode::kLoseSome},
                      LogWay{"AnswerLostLoseSome", FaultMoment::kAfter, CrashMode::kLoseSome},
                      LogWay{"AnswerLostKeepAll", FaultMoment::kAfter, CrashMode::kKeepAll}),
    [](const auto& way) { return std::string(way.param.name); });

}  // namespace
}  // namespace parallelrun::coordinator
