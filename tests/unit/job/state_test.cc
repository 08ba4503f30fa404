#include "job/job_state.h"

#include <gtest/gtest.h>

#include "job/verdict.h"

namespace parallelrun::job {
namespace {

std::string NoItems(BatchId) { return ""; }

PlanChunkRecord Chunk(BatchId first, uint64_t first_item, uint32_t slices, uint32_t rows) {
  TabularChunk tabular;
  tabular.path = "/in/a.csv";
  for (uint32_t i = 0; i < slices; ++i) tabular.slices.push_back({i * 10ULL, 10, rows});
  PlanChunkRecord chunk;
  chunk.first = first;
  chunk.first_item = first_item;
  chunk.content = tabular;
  return chunk;
}

class JobStateTest : public ::testing::Test {
 protected:
  void Apply(const Record& record, const Place& rows = {}) {
    const Status status = state_.Apply(record, {1, 100, 10}, rows);
    ASSERT_TRUE(status.ok()) << status.error().message;
  }
  void Plan(uint32_t batches, uint32_t rows) {
    Apply(Chunk(0, 0, batches, rows));
    Apply(PlanEndRecord{batches, uint64_t{batches} * rows});
  }
  void Succeed(BatchId id, uint32_t items, uint32_t rows = 1) {
    ResultRecord result;
    result.id = id;
    result.fence = {1, ++fence_};
    result.items_succeeded = items;
    result.row_count = rows;
    Apply(result, {1, 1000 + id, 7});
  }
  void FailAttempt(BatchId id, bool final, const char* message = "boom",
                   const char* kind = "Exception") {
    FailedRecord failed;
    failed.id = id;
    failed.fence = {1, ++fence_};
    failed.end = final ? AttemptEnd::kFinal : AttemptEnd::kAgain;
    failed.kind = kind;
    failed.message = message;
    Apply(failed);
  }
  std::optional<Verdict> Decided(std::optional<int64_t> items = {},
                                 std::optional<int64_t> batches = {},
                                 std::optional<double> percent = {}) {
    return Decide(state_, {{items, batches, percent}, true, false}, NoItems);
  }

  JobState state_;
  uint64_t fence_ = 0;
};

TEST_F(JobStateTest, CountsAlwaysAddUp) {
  Plan(3, 5);
  Succeed(0, 4);
  FailAttempt(1, false);
  FailAttempt(2, true);
  const JobCounts& counts = state_.counts();
  EXPECT_EQ(counts.planned, 3u);
  EXPECT_EQ(counts.succeeded, 1u);
  EXPECT_EQ(counts.failed, 1u);
  EXPECT_EQ(counts.items_succeeded, 4u);
  EXPECT_EQ(counts.items_missing, 1u);
  EXPECT_EQ(counts.items_failed, 5u);
  EXPECT_FALSE(state_.settled(1));
  EXPECT_FALSE(state_.all_settled());
}

TEST_F(JobStateTest, MoreElementsThanItemsIsNotAFailure) {
  Plan(1, 5);
  Succeed(0, 9);
  EXPECT_EQ(state_.counts().items_missing, 0u);
}

TEST_F(JobStateTest, SkippedItemsAreFailedOnesOfTheirResult) {
  Plan(2, 5);
  Apply(SkippedRecord{0, {1, 1}, 2});
  EXPECT_EQ(state_.batch(0).items_skipped, 0u);  // nothing, before its result
  EXPECT_EQ(state_.counts().items_failed, 0u);
  Succeed(0, 2);  // under this fence
  EXPECT_EQ(state_.batch(0).items_skipped, 2u);
  EXPECT_EQ(state_.counts().items_failed, 2u);
  EXPECT_EQ(state_.counts().items_skipped, 2u);
  EXPECT_EQ(state_.counts().items_missing, 1u);
  Apply(SkippedRecord{1, {1, 2}, 99});
  Succeed(1, 4);  // no more than the items that are left
  EXPECT_EQ(state_.batch(1).items_skipped, 1u);
  EXPECT_EQ(state_.counts().items_failed, 3u);
  EXPECT_EQ(state_.counts().items_missing, 1u);
  const std::optional<Verdict> verdict = Decided();
  EXPECT_EQ(verdict->reason, "CompletedWithFailures");
  EXPECT_NE(verdict->message.find("3 of them left out as bad rows"), std::string::npos);
  EXPECT_EQ(Decided(3)->reason, "ErrorThresholdExceeded");  // with the one without an element
  EXPECT_NE(Decided(3)->message.find(
                "4 items have failed (1 of them got no element from run(), 3 of them left "
                "out as bad rows); spec.errorThreshold allows 3"),
            std::string::npos)
      << Decided(3)->message;
}

TEST_F(JobStateTest, SkippedItemsOfAnotherFenceAreVoid) {
  Plan(3, 5);
  Apply(SkippedRecord{0, {1, 77}, 2});
  Succeed(0, 3);
  Apply(SkippedRecord{1, {1, 2}, 2});
  FailAttempt(1, false);
  Succeed(1, 3);
  Apply(SkippedRecord{2, {1, 4}, 2});
  Apply(SkippedRecord{2, {1, 4}, 1});  // said again
  Succeed(2, 4);
  EXPECT_EQ(state_.batch(0).items_skipped, 0u);
  EXPECT_EQ(state_.batch(1).items_skipped, 0u);
  EXPECT_EQ(state_.counts().items_missing, 4u);
  EXPECT_EQ(state_.counts().items_failed, 1u);
}

TEST_F(JobStateTest, ANewGenerationKeepsWhatResultsSkipped) {
  Plan(2, 5);
  Apply(SkippedRecord{0, {1, 1}, 2});
  Succeed(0, 3);
  FailAttempt(1, true);
  SettingsRecord settings;
  settings.generation = 2;
  Apply(settings);
  EXPECT_EQ(state_.batch(0).items_skipped, 2u);
  EXPECT_EQ(state_.counts().items_failed, 2u);
  EXPECT_EQ(state_.counts().items_skipped, 2u);
}

TEST_F(JobStateTest, RecordsThatCannotFollowAreCorruption) {
  Plan(2, 5);
  Succeed(0, 5);
  ResultRecord again;
  again.id = 0;
  EXPECT_EQ(state_.Apply(again, {}, {}).error().code, Code::kCorrupt);
  again.id = 7;
  EXPECT_EQ(state_.Apply(again, {}, {}).error().code, Code::kCorrupt);
  EXPECT_EQ(state_.Apply(SkippedRecord{0, {1, 9}, 1}, {}, {}).error().code, Code::kCorrupt);
  EXPECT_EQ(state_.Apply(SkippedRecord{7, {1, 9}, 1}, {}, {}).error().code, Code::kCorrupt);
  EXPECT_EQ(state_.Apply(Chunk(2, 10, 1, 5), {}, {}).error().code, Code::kCorrupt);
  JobState other;
  EXPECT_EQ(other.Apply(Chunk(1, 0, 1, 5), {}, {}).error().code, Code::kCorrupt);
  EXPECT_EQ(other.Apply(PlanEndRecord{1, 1}, {}, {}).error().code, Code::kCorrupt);
}

TEST_F(JobStateTest, ANewGenerationClearsFailuresAndKeepsResults) {
  Plan(3, 5);
  Succeed(0, 5);
  FailAttempt(1, false);
  FailAttempt(2, true);
  Apply(VerdictRecord{Outcome::kFailed, 0, "X", "x"});
  SettingsRecord settings;
  settings.generation = 2;
  Apply(settings);
  EXPECT_TRUE(state_.settled(0));
  EXPECT_FALSE(state_.settled(2));
  EXPECT_EQ(state_.batches()[1].failed_attempts, 0);
  EXPECT_EQ(state_.counts().failed, 0u);
  EXPECT_EQ(state_.counts().items_failed, 0u);
  EXPECT_EQ(state_.errors().total(), 0u);
  EXPECT_FALSE(state_.verdict());
}

TEST_F(JobStateTest, TheSameGenerationClearsNothing) {
  SettingsRecord settings;
  settings.generation = 1;
  Apply(settings);
  Plan(1, 5);
  FailAttempt(0, false);
  Apply(settings);
  EXPECT_EQ(state_.batches()[0].failed_attempts, 1);
}

TEST_F(JobStateTest, RowsInPartsBelongToTheirFence) {
  Plan(2, 5);
  Apply(RowsRecord{0, {1, 1}, ""}, {1, 50, 4});
  Apply(RowsRecord{0, {1, 2}, ""}, {1, 60, 5});  // another attempt: the parts before are void
  EXPECT_EQ(state_.PartBytes(0, {1, 1}), 0u);
  EXPECT_EQ(state_.PartBytes(0, {1, 2}), 5u);
  ResultRecord result;
  result.id = 0;
  result.fence = {1, 2};
  Apply(result, {1, 70, 6});
  const std::vector<Place> rows = state_.RowsOf(0);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].offset, 60u);
  EXPECT_EQ(rows[1].offset, 70u);
  Apply(RowsRecord{1, {1, 3}, ""}, {1, 80, 4});
  Succeed(1, 5);  // under another fence
  EXPECT_EQ(state_.RowsOf(1).size(), 1u);
}

TEST_F(JobStateTest, FindsTheChunkOfAMiniBatch) {
  Apply(Chunk(0, 0, 3, 5));
  Apply(Chunk(3, 15, 2, 5));
  EXPECT_EQ(state_.ChunkOf(2).first, 0u);
  EXPECT_EQ(state_.ChunkOf(3).first, 3u);
  EXPECT_EQ(state_.ChunkOf(4).first, 3u);
}

TEST_F(JobStateTest, ErrorsThatDifferOnlyInDigitsAreOne) {
  Plan(4, 5);
  FailAttempt(0, false, "row 17 is bad");
  FailAttempt(1, false, "row 18 is bad");
  FailAttempt(2, false, "no such file");
  const auto top = state_.errors().Top(5);
  ASSERT_EQ(top.size(), 2u);
  EXPECT_EQ(top[0].message, "row 17 is bad");
  EXPECT_EQ(top[0].count, 2u);
}

TEST_F(JobStateTest, MisfitsOfOneColumnAreOneErrorThatIsTheFirst) {
  Plan(6, 5);
  const auto misfit = [&](BatchId id, const char* message) {
    FailAttempt(id, true, message, "Misfit");
  };
  misfit(0, "/in/b.csv:17: column \"k1\" is integer, and the value is \"abc\". Write dtypes");
  misfit(1, "/in/c: d.csv:9: column \"k2\" is integer, and the value is missing.");
  misfit(2, "/in/a.csv:3: column \"k1\" is integer, and the value is missing. Write dtypes");
  misfit(3, "/in/e.csv:3: the row has 4 fields, and the table 3 columns.");
  misfit(4, "/in/f.csv:9: the row has 4 fields, and the table 3 columns.");
  const auto top = state_.errors().Top(5);
  ASSERT_EQ(top.size(), 3u);
  EXPECT_EQ(top[0].message.substr(0, 13), "/in/b.csv:17:");
  EXPECT_EQ(top[0].count, 2u);
  EXPECT_EQ(top[1].count, 2u);
}

// --- verdict

TEST_F(JobStateTest, ThresholdsAreStrictlyGreater) {
  Plan(4, 5);
  FailAttempt(0, true);
  EXPECT_FALSE(Decided(5, 1, 25));
  EXPECT_EQ(Decided(4)->reason, "ErrorThresholdExceeded");
  EXPECT_EQ(Decided(-1, 0)->reason, "AllowedFailedCountExceeded");
  EXPECT_EQ(Decided(-1, -1, 24.9)->reason, "AllowedFailedPercentExceeded");
}

TEST_F(JobStateTest, PercentWaitsForTheWholePlan) {
  Apply(Chunk(0, 0, 2, 5));
  FailAttempt(0, true);
  EXPECT_FALSE(Decided(-1, -1, 10));
}

TEST_F(JobStateTest, VerdictOfAFinishedJob) {
  Plan(2, 5);
  Succeed(0, 5);
  EXPECT_FALSE(Decided());
  FailAttempt(1, true);
  EXPECT_EQ(Decided()->outcome, Outcome::kSucceeded);
  EXPECT_EQ(Decided()->reason, "CompletedWithFailures");
}

TEST_F(JobStateTest, NothingSucceededIsAFailureWithItsCause) {
  Plan(1, 5);
  FailAttempt(0, true, "no such column");
  const auto verdict = Decided();
  EXPECT_EQ(verdict->reason, "NothingSucceeded");
  EXPECT_NE(verdict->message.find("no such column"), std::string::npos);
}

TEST_F(JobStateTest, NoItemAtAllIsASuccessOnlyWhereTheJobSaysSo) {
  FailureRules rules;
  rules.may_be_empty = "inputs[day]";
  EXPECT_FALSE(Decide(state_, rules, NoItems)) << "it is not listed yet";
  Apply(PlanEndRecord{0, 0});
  EXPECT_EQ(Decided()->reason, "NothingSucceeded");
  for (const bool append_row : {true, false}) {
    rules.append_row = append_row;
    const auto verdict = Decide(state_, rules, NoItems);
    EXPECT_EQ(verdict->outcome, Outcome::kSucceeded);
    EXPECT_EQ(verdict->reason, "Complete");
    EXPECT_EQ(verdict->message.find("EMPTY: there was no item in inputs[day]"), 0U);
  }
}

TEST_F(JobStateTest, WhatMayBeEmptyMayNotFail) {
  Plan(1, 5);
  FailureRules rules;
  rules.may_be_empty = "inputs[day]";
  EXPECT_FALSE(Decide(state_, rules, NoItems));
  FailAttempt(0, true);
  EXPECT_EQ(Decide(state_, rules, NoItems)->reason, "NothingSucceeded");
}

TEST_F(JobStateTest, NoRowsFailsOnlyAppendedOutput) {
  Plan(1, 5);
  Succeed(0, 5, 0);
  EXPECT_EQ(Decided()->reason, "NoRows");
  EXPECT_EQ(Decide(state_, {{}, false, false}, NoItems)->reason, "Complete");
  FailureRules rules;
  rules.may_be_empty = "inputs[day]";  // it was not
  EXPECT_EQ(Decide(state_, rules, NoItems)->reason, "NoRows");
}

TEST_F(JobStateTest, AShortReturnCountsItsMissingItemsWhereAThresholdIsWritten) {
  Plan(1, 5);
  Succeed(0, 3);
  EXPECT_EQ(Decided(1)->reason, "ErrorThresholdExceeded");
  EXPECT_NE(Decided(1)->message.find("2 of them got no element from run()"), std::string::npos);
  EXPECT_EQ(Decided(2)->reason, "CompletedWithFailures");
  EXPECT_EQ(Decided(2)->message.find("2 of 5 items have no row: "), 0U);
  // Otherwise it is reported.
  for (const auto threshold : {std::optional<int64_t>(), std::optional<int64_t>(-1)}) {
    EXPECT_EQ(Decided(threshold)->reason, "Complete");
    EXPECT_NE(Decided(threshold)->message.find("2 items got no element"), std::string::npos);
  }
  EXPECT_EQ(Decide(state_, {{1, {}, {}}, false, false}, NoItems)->reason,
            "Complete");  // SummaryOnly
}

// The ledger keeps the path of that time; the folder may have been moved since.
TEST(JobState, WhatWasPublishedIsWhereItsFolderIsNow) {
  JobState state;
  state.OutputIsAt("/moved/o.txt");
  EXPECT_FALSE(state.published());
  ASSERT_TRUE(state.Apply(PublishedRecord{"/out/o.txt", 1, 1, {}}, {}, {}).ok());
  EXPECT_EQ(state.published()->path, "/out/o.txt");
  state.OutputIsAt("/moved/o.txt");
  EXPECT_EQ(state.published()->path, "/moved/o.txt");
}

}  // namespace
}  // namespace parallelrun::job
