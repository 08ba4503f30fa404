// Mini-batches that were split because they used their tries (docs/ledger.md, "Pieces").
#include <gtest/gtest.h>

#include "job/availability.h"
#include "job/job_state.h"
#include "job/verdict.h"

namespace parallelrun::job {
namespace {

std::string Unnamed(BatchId) { return ""; }

constexpr BatchId Piece(BatchId whole, uint64_t k) { return whole + (k << 32); }

class PiecesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    TabularChunk tabular;
    tabular.path = "/in/a.csv";
    for (uint32_t i = 0; i < 2; ++i) tabular.slices.push_back({i * 10ULL, 10, 5});
    PlanChunkRecord chunk;
    chunk.content = tabular;
    Apply(chunk);
    Apply(PlanEndRecord{2, 10});
  }
  void Apply(const Record& record, const Place& rows = {}) {
    const Status status = state_.Apply(record, {1, 100, 10}, rows);
    ASSERT_TRUE(status.ok()) << status.error().message;
  }
  void Succeed(BatchId id) {
    ResultRecord result;
    result.id = id;
    result.fence = {1, ++fence_};
    result.items_succeeded = state_.batch(id).items;
    result.row_count = result.items_succeeded;
    Apply(result, {1, 1000 + fence_, 7});
  }
  Status Fail(BatchId id, AttemptEnd end) {
    FailedRecord failed;
    failed.id = id;
    failed.fence = {1, ++fence_};
    failed.end = end;
    failed.kind = "Exception";
    failed.message = "boom";
    return state_.Apply(failed, {}, {});
  }
  void Split(BatchId id) { ASSERT_TRUE(Fail(id, AttemptEnd::kSplit).ok()); }
  // Of the five items of mini-batch 0 the fourth is bad.
  void IsolateTheFourth() {
    Split(0);
    Succeed(Piece(0, 2));  // 0, 1, 2
    Split(Piece(0, 3));    // 3, 4
    Succeed(Piece(0, 7));
    ASSERT_TRUE(Fail(Piece(0, 6), AttemptEnd::kFinal).ok());
  }
  void NextGeneration(uint32_t generation) {
    SettingsRecord settings;
    settings.generation = generation;
    Apply(settings);
  }

  JobState state_;
  uint64_t fence_ = 0;
};

TEST_F(PiecesTest, HalvesHaveIdsThatNameTheirPlace) {
  EXPECT_EQ(FirstPiece(7), Piece(7, 2));
  EXPECT_EQ(SecondPiece(7), Piece(7, 3));
  EXPECT_EQ(FirstPiece(Piece(7, 3)), Piece(7, 6));
  EXPECT_EQ(SecondPiece(Piece(7, 3)), Piece(7, 7));
  EXPECT_EQ(WholeOf(Piece(7, 3)), 7u);
  EXPECT_EQ(MiniBatchText(7), "7");
  EXPECT_EQ(MiniBatchText(Piece(7, 3)), "7/3");
  EXPECT_FALSE(HasPieces(Piece(7, uint64_t{1} << 31)));
}

TEST_F(PiecesTest, ASplitMiniBatchRunsUntilItsPiecesAreSettled) {
  Split(0);
  EXPECT_TRUE(state_.settled(0));
  EXPECT_EQ(state_.batch(Piece(0, 2)).items, 3u);
  EXPECT_EQ(state_.batch(Piece(0, 3)).items, 2u);
  EXPECT_EQ(state_.FirstItemOf(Piece(0, 3)), 3u);
  EXPECT_EQ(state_.counts().split, 1u);
  EXPECT_EQ(state_.counts().pieces_open, 2u);
  EXPECT_EQ(state_.counts().failed, 0u);
  EXPECT_EQ(state_.counts().items_failed, 0u);
  Succeed(1);
  EXPECT_FALSE(state_.all_settled());
}

TEST_F(PiecesTest, OneBadItemFailsAloneAndTheCountsAreTrue) {
  IsolateTheFourth();
  Succeed(1);
  const JobCounts& counts = state_.counts();
  EXPECT_EQ(counts.succeeded, 2u);
  EXPECT_EQ(counts.failed, 0u);
  EXPECT_EQ(counts.split, 0u);
  EXPECT_EQ(counts.pieces_open, 0u);
  EXPECT_EQ(counts.items_succeeded, 9u);
  EXPECT_EQ(counts.items_failed, 1u);
  EXPECT_EQ(counts.items_isolated, 1u);
  EXPECT_EQ(counts.rows, 9u);
  EXPECT_TRUE(state_.all_settled());
  const auto verdict = Decide(state_, {{1, 0, 0.0}, true, false}, Unnamed);
  EXPECT_EQ(verdict->reason, "CompletedWithFailures");
  EXPECT_EQ(Decide(state_, {{0, {}, {}}, true, false}, Unnamed)->reason, "ErrorThresholdExceeded");
}

TEST_F(PiecesTest, RowsAreInTheOrderOfTheItems) {
  Split(0);
  Split(Piece(0, 3));
  Succeed(Piece(0, 7));
  Succeed(Piece(0, 6));
  Succeed(Piece(0, 2));
  std::vector<uint64_t> offsets;
  for (const Place& place : state_.RowsOf(0)) offsets.push_back(place.offset);
  EXPECT_EQ(offsets, (std::vector<uint64_t>{1005, 1004, 1003}));
}

TEST_F(PiecesTest, AMiniBatchOfWhichNothingSucceedsHasFailed) {
  Split(0);
  ASSERT_TRUE(Fail(Piece(0, 2), AttemptEnd::kFinal).ok());
  ASSERT_TRUE(Fail(Piece(0, 3), AttemptEnd::kFinal).ok());
  EXPECT_EQ(state_.counts().failed, 1u);
  EXPECT_EQ(state_.counts().items_failed, 5u);
}

TEST_F(PiecesTest, OneItemCannotBeSplit) {
  Split(0);
  Split(Piece(0, 3));
  EXPECT_EQ(Fail(Piece(0, 6), AttemptEnd::kSplit).error().code, Code::kCorrupt);
  EXPECT_EQ(Fail(Piece(0, 3), AttemptEnd::kAgain).error().code, Code::kCorrupt);
  EXPECT_EQ(Fail(Piece(1, 2), AttemptEnd::kFinal).error().code, Code::kCorrupt);
}

TEST_F(PiecesTest, ANewGenerationTriesFailedPiecesAgain) {
  IsolateTheFourth();
  Succeed(1);
  NextGeneration(2);
  EXPECT_EQ(state_.counts().succeeded, 1u);
  EXPECT_EQ(state_.counts().split, 1u);
  EXPECT_EQ(state_.counts().pieces_open, 1u);
  EXPECT_EQ(state_.counts().items_failed, 0u);
  EXPECT_EQ(state_.counts().items_isolated, 0u);
  Availability leases(state_, 2, {}, true, WorkInstant(seconds(1)));
  EXPECT_EQ(leases.pending(), 1u);
  EXPECT_EQ(leases.Grant({0, {2, 1}}, WorkInstant(seconds(1)))->id, Piece(0, 6));
  Succeed(Piece(0, 6));
  EXPECT_EQ(state_.counts().succeeded, 2u);
  EXPECT_EQ(state_.counts().items_succeeded, 10u);
  EXPECT_EQ(state_.RowsOf(0).size(), 3u);
}

TEST_F(PiecesTest, ANewGenerationPutsTogetherWhatDidNotSucceedAtAll) {
  Split(0);
  Split(Piece(0, 3));
  ASSERT_TRUE(Fail(Piece(0, 7), AttemptEnd::kFinal).ok());
  NextGeneration(2);
  EXPECT_TRUE(state_.pieces().empty());
  EXPECT_FALSE(state_.settled(0));
  const JobCounts& counts = state_.counts();
  EXPECT_EQ(counts.split + counts.pieces_open + counts.items_failed + counts.items_isolated, 0u);
  Succeed(0);
  Succeed(1);
  EXPECT_EQ(counts.succeeded, 2u);
  EXPECT_TRUE(state_.all_settled());
}

TEST_F(PiecesTest, ANewGenerationPutsTogetherWhatFailedWhole) {
  Split(0);
  ASSERT_TRUE(Fail(Piece(0, 2), AttemptEnd::kFinal).ok());
  ASSERT_TRUE(Fail(Piece(0, 3), AttemptEnd::kFinal).ok());
  NextGeneration(2);
  EXPECT_EQ(state_.counts().failed, 0u);
  EXPECT_EQ(state_.counts().items_failed, 0u);
  EXPECT_FALSE(state_.settled(0));
}

}  // namespace
}  // namespace parallelrun::job
