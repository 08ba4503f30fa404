#include "job/shutdowns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "job/job_state.h"
#include "job/verdict.h"

namespace parallelrun::job {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string NoNames(BatchId) { return ""; }

constexpr ProcessId kOne{0, 7};
constexpr ProcessId kTwo{1, 7};

ShutdownRecord Ends(ProcessId process, ProcessEnd end, std::string_view message = "") {
  return {process.node, process.number, end, message, message.empty() ? "" : "log"};
}

TEST(Shutdowns, OnlyWhoHasOneIsWaitedForAndCounted) {
  Shutdowns all;
  all.AddResult(kOne);
  EXPECT_THAT(all.all(), IsEmpty());
  all.Apply(Ends(kOne, ProcessEnd::kOpen));
  all.Apply(Ends(kTwo, ProcessEnd::kOpen));
  EXPECT_TRUE(all.AnyOpen());
  EXPECT_THAT(all.OpenOf(0), ElementsAre(kOne));
  EXPECT_THAT(all.Open(), ElementsAre(kOne, kTwo));
  all.AddResult(kOne);
  all.Apply(Ends(kOne, ProcessEnd::kClosed));
  all.Apply(Ends(kTwo, ProcessEnd::kLost, "gone"));
  EXPECT_FALSE(all.AnyOpen());
  EXPECT_EQ(all.unclosed().processes, 0U) << "the lost one had no result";
  EXPECT_THAT(all.NotClosed(), IsEmpty());
}

TEST(Shutdowns, WhatIsToldTwiceCountsOnce) {
  Shutdowns all;
  for (int i = 0; i < 2; ++i) all.Apply(Ends(kOne, ProcessEnd::kOpen));
  EXPECT_TRUE(all.Knows(kOne, ProcessEnd::kOpen));
  for (int i = 0; i < 2; ++i) all.Apply(Ends(kOne, ProcessEnd::kFailed, "raised"));
  EXPECT_FALSE(all.AnyOpen());
  all.Apply(Ends(kOne, ProcessEnd::kOpen));
  EXPECT_FALSE(all.AnyOpen()) << "what ended badly stays so";
}

TEST(Shutdowns, WhoWasThoughtLostMayStillSayThatItEndedWell) {
  Shutdowns all;
  all.Apply(Ends(kOne, ProcessEnd::kOpen));
  all.AddResult(kOne);
  all.Apply(Ends(kOne, ProcessEnd::kLost, "gone"));
  EXPECT_EQ(all.unclosed().processes, 1U);
  all.Apply(Ends(kOne, ProcessEnd::kClosed));
  EXPECT_EQ(all.unclosed().processes, 0U);
}

TEST(Shutdowns, WhatAScriptRaisedSaysMost) {
  Shutdowns all;
  for (const ProcessId& process : {kOne, kTwo}) {
    all.Apply(Ends(process, ProcessEnd::kOpen));
    all.AddResult(process);
  }
  all.AddResult(kTwo);
  all.Apply(Ends(kOne, ProcessEnd::kLost, "gone"));
  all.Apply(Ends(kTwo, ProcessEnd::kFailed, "OSError: full (s.py:3)"));
  const Shutdowns::Unclosed unclosed = all.unclosed();
  EXPECT_EQ(unclosed.processes, 2U);
  EXPECT_EQ(unclosed.results, 3U);
  EXPECT_EQ(unclosed.first, kTwo);
  EXPECT_EQ(unclosed.how.message, "OSError: full (s.py:3)");
}

// Three mini-batches of two items; process 7 of node 0 gave the first two and did not close.
class ShutdownState : public ::testing::Test {
 protected:
  void SetUp() override {
    TabularChunk table;
    table.path = "/in/a.csv";
    for (uint64_t i = 0; i < 3; ++i) table.slices.push_back({i * 10, 10, 2});
    PlanChunkRecord chunk;
    chunk.content = table;
    Apply(chunk);
    Apply(PlanEndRecord{3, 6});
    Apply(Ends(kOne, ProcessEnd::kOpen));
    for (BatchId id = 0; id < 3; ++id) {
      if (id == 1) Apply(SkippedRecord{1, {1, 2}, 1});
      const ProcessId by = id == 2 ? kTwo : kOne;
      Apply(ResultRecord{{.items_succeeded = id == 1 ? 1U : 2U, .row_count = 5},
                         id,
                         {1, id + 1},
                         by.node,
                         by.number,
                         ""});
    }
    Apply(Ends(kOne, ProcessEnd::kFailed, "OSError: full (s.py:3)"));
  }
  void Apply(const Record& record) {
    const Status applied = state.Apply(record, {1, 100, 10}, {1, 100, 10});
    ASSERT_TRUE(applied.ok()) << applied.error().message;
  }
  JobState state;
};

TEST_F(ShutdownState, IsAFailureWhereTheScriptWritesTheResults) {
  const auto verdict = Decide(state, {{}, false, false}, NoNames);
  EXPECT_EQ(verdict->outcome, Outcome::kFailed);
  EXPECT_EQ(verdict->reason, kShutdownFailed);
  EXPECT_THAT(verdict->message, HasSubstr("1 process with the results of 2 mini-batches"));
  EXPECT_THAT(verdict->message,
              HasSubstr("process007 of node 0: OSError: full (s.py:3) (log log)"));
  EXPECT_THAT(verdict->message, HasSubstr("--retry-failed"));
}

TEST_F(ShutdownState, IsAReasonWhereTheRowsAreThere) {
  Apply(SettingsRecord{2, 0, 0, "", "", "", false});
  const auto verdict = Decide(state, {{-1, {}, {}}, true, false}, NoNames);
  EXPECT_EQ(verdict->outcome, Outcome::kSucceeded);
  EXPECT_EQ(verdict->reason, kWithFailures) << "a lost row weighs more";
  EXPECT_THAT(verdict->message, HasSubstr("all rows are there, but shutdown() did not end well"));
}

TEST_F(ShutdownState, ResultsThatAreRunAgainAreAsIfTheyHadNeverBeen) {
  Apply(AgainRecord{0, 7, {{0, 2, 5}, {1, 1, 5}}});
  const JobCounts& counts = state.counts();
  EXPECT_EQ(counts.succeeded, 1U);
  EXPECT_EQ(counts.items_succeeded, 2U);
  EXPECT_EQ(counts.items_skipped + counts.items_failed + counts.items_missing, 0U);
  EXPECT_EQ(counts.rows, 5U);
  EXPECT_FALSE(state.settled(0));
  EXPECT_FALSE(state.all_settled());
  EXPECT_THAT(state.RowsOf(0), IsEmpty());
  EXPECT_THAT(state.shutdowns().all(), IsEmpty());
  const auto twice = state.Apply(AgainRecord{0, 7, {{0, 2, 5}}}, {}, {});
  EXPECT_EQ(twice.error().code, Code::kCorrupt);
}

TEST_F(ShutdownState, AProcessIsKnownUntilTheLastOfItsResultsIsVoid) {
  Apply(AgainRecord{0, 7, {{0, 2, 5}}});
  EXPECT_EQ(state.shutdowns().unclosed().results, 1U);
  Apply(AgainRecord{0, 7, {{1, 1, 5}}});
  EXPECT_EQ(state.shutdowns().unclosed().results, 0U);
}

TEST_F(ShutdownState, APieceIsRunAgainByItself) {
  state = JobState();
  TabularChunk table;
  table.path = "/in/a.csv";
  table.slices.push_back({0, 10, 2});
  PlanChunkRecord chunk;
  chunk.content = table;
  Apply(chunk);
  Apply(PlanEndRecord{1, 2});
  Apply(Ends(kOne, ProcessEnd::kOpen));
  FailedRecord split;
  split.fence = {1, 1};
  split.end = AttemptEnd::kSplit;
  Apply(split);
  Apply(ResultRecord{{.items_succeeded = 1, .row_count = 1}, FirstPiece(0), {1, 2}, 0, 7, ""});
  Apply(ResultRecord{{.items_succeeded = 1, .row_count = 1}, SecondPiece(0), {1, 3}, 1, 7, ""});
  EXPECT_TRUE(state.all_settled());
  Apply(AgainRecord{0, 7, {{FirstPiece(0), 1, 1}}});
  EXPECT_FALSE(state.all_settled());
  EXPECT_EQ(state.counts().pieces_open, 1U);
  EXPECT_EQ(state.counts().split, 1U);
  EXPECT_FALSE(state.settled(FirstPiece(0)));
  EXPECT_TRUE(state.settled(SecondPiece(0)));
  Apply(ResultRecord{{.items_succeeded = 1, .row_count = 1}, FirstPiece(0), {2, 1}, 1, 7, ""});
  EXPECT_TRUE(state.all_settled());
  EXPECT_EQ(state.counts().items_succeeded, 2U);
}

}  // namespace
}  // namespace parallelrun::job
