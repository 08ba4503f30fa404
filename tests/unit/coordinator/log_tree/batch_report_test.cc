#include "coordinator/log_tree/batch_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "coordinator/core/attempts.h"
#include "coordinator/log_tree/log_sink.h"
#include "tests/unit/coordinator/core/journal_harness.h"

namespace parallelrun::coordinator {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class BatchReportTest : public ::testing::Test {
 protected:
  void SetUp() override {
    limits_.spec.run_max_try = 3;
    h_.Plan(2);
    attempts_ = std::make_unique<Attempts>(limits_, *h_.journal, *h_.availability, *h_.plan);
  }

  // Its lines, without the header.
  std::vector<std::string> Lines() {
    h_.Sync();
    const Result<LogSink> sink = LogSink::Open(h_.files, "/job/logs");
    EXPECT_TRUE(sink.ok());
    EXPECT_TRUE(WriteBatchReports(*h_.ledger, h_.state, {}, sink->folder()).ok());
    const std::string text =
        h_.files.Contents("/job/logs/sys/job_report/processed_mini-batches.csv");
    std::vector<std::string> lines;
    for (size_t at = 0; at < text.size();) {
      const size_t end = text.find('\n', at);
      lines.push_back(text.substr(at, end - at));
      at = end + 1;
    }
    lines.erase(lines.begin());
    return lines;
  }

  CoordinatorLimits limits_;
  JournalHarness h_;
  std::unique_ptr<Attempts> attempts_;
};

TEST_F(BatchReportTest, AnAttemptTellsWhereItsTimeWentAsFarAsThatIsKnown) {
  job::Finished done = JournalHarness::Done(h_.Lease(0), job::Finished::Kind::kFailed);
  done.run_ns = 5'000'000;
  done.waited_ns = 1'000'000;
  done.read_ns = 2'000'000;
  attempts_->Failed(0, done, 17);
  h_.Sync();
  done = JournalHarness::Done(h_.Lease(0));
  done.waited_ns = 0;
  done.wrote_ns = 3'000'000;
  done.items_skipped = 1;
  attempts_->Succeeded(0, done, 17);
  done = JournalHarness::Done(h_.Lease(0));
  attempts_->Succeeded(0, done, 17);
  const std::vector<std::string> lines = Lines();
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_THAT(lines[0],
              HasSubstr(R"(""rows"":0,""waitedSeconds"":0.001000,""readSeconds"":0.002000})"));
  EXPECT_THAT(lines[0], HasSubstr(",0.005000,RUN_EXCEPTION,"));
  EXPECT_THAT(lines[1],
              HasSubstr(R"(""rows"":1,""waitedSeconds"":0.000000,""wroteSeconds"":0.003000})"));
  EXPECT_THAT(lines[2], AllOf(HasSubstr(R"(""rows"":1})"), Not(HasSubstr("Seconds\"\":"))))
      << "an agent of before says nothing of it, and the usage in front is another one's";
}

}  // namespace
}  // namespace parallelrun::coordinator
