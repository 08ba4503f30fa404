#include "coordinator/start/again_records.h"

#include <gtest/gtest.h>

namespace parallelrun::coordinator {
namespace {

job::ResultRecord ResultOf(job::BatchId id, uint32_t node, uint32_t process) {
  job::ResultRecord result;
  result.id = id;
  result.fence = {1, 10 + id};
  result.node = node;
  result.process = process;
  result.items_succeeded = 3;
  result.row_count = 2;
  return result;
}

TEST(AgainRecordsTest, AreByProcess) {
  AgainRecords again;
  EXPECT_TRUE(again.Take().empty());
  again.Add(ResultOf(0, 1, 7));
  again.Add(ResultOf(1, 0, 7));
  again.Add(ResultOf(2, 1, 7));
  const std::vector<job::AgainRecord> records = again.Take();
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].node, 0U);
  ASSERT_EQ(records[0].results.size(), 1U);
  EXPECT_EQ(records[0].results[0].id, 1U);
  EXPECT_EQ(records[1].node, 1U);
  EXPECT_EQ(records[1].process, 7U);
  ASSERT_EQ(records[1].results.size(), 2U);
  EXPECT_EQ(records[1].results[1].id, 2U);
  EXPECT_EQ(records[1].results[1].items_succeeded, 3U);
  EXPECT_EQ(records[1].results[1].row_count, 2U);
  EXPECT_TRUE(again.Take().empty());
}

TEST(AgainRecordsTest, ARecordHoldsNoMoreThanSoMany) {
  AgainRecords again;
  for (job::BatchId id = 0; id < AgainRecords::kMostResults; ++id) again.Add(ResultOf(id, 0, 0));
  std::vector<job::AgainRecord> records = again.Take();
  ASSERT_EQ(records.size(), 1U) << "none is empty";
  EXPECT_EQ(records[0].results.size(), AgainRecords::kMostResults);
  for (job::BatchId id = 0; id <= AgainRecords::kMostResults; ++id) again.Add(ResultOf(id, 0, 0));
  records = again.Take();
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[1].results.size(), 1U);
  EXPECT_EQ(records[1].results[0].id, AgainRecords::kMostResults);
}

TEST(AgainRecordsTest, OfTheResultsOfAMiniBatchTheLastOneCounts) {
  job::JobState state;
  job::PlanChunkRecord chunk;
  chunk.content = job::RankChunk{2};
  ASSERT_TRUE(state.Apply(chunk, {}, {}).ok());
  const job::ResultRecord first = ResultOf(0, 0, 0);
  EXPECT_FALSE(StillCounts(state, first)) << "it is not there yet";
  ASSERT_TRUE(state.Apply(first, {}, {}).ok());
  EXPECT_TRUE(StillCounts(state, first));
  EXPECT_FALSE(StillCounts(state, ResultOf(7, 0, 0))) << "it is not planned";
  ASSERT_TRUE(state.Apply(job::AgainRecord{0, 0, {{0, 3, 2}}}, {}, {}).ok());
  EXPECT_FALSE(StillCounts(state, first));
  job::ResultRecord second = first;
  second.fence.number = 99;
  ASSERT_TRUE(state.Apply(second, {}, {}).ok());
  EXPECT_FALSE(StillCounts(state, first));
  EXPECT_TRUE(StillCounts(state, second));
}

}  // namespace
}  // namespace parallelrun::coordinator
