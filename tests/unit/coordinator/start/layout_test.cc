#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/start/layout.h"

namespace parallelrun {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Job JobOf(InputKind kind) {
  Job job;
  Input input;
  input.name = "in";
  input.kind = kind;
  input.from = {"data", "a/b"};
  input.partition_format = "{user}/{n}.x";
  job.spec.inputs = {input};
  job.spec.mini_batch_size = 7;
  job.spec.output.to = {"data", "out"};
  job.spec.logs = {"data", "logs"};
  job.spec.state.in = {"data", "state"};
  return job;
}

const Volumes kVolumes = {{"data", "/volumes/data"}};

TEST(PlanLayoutTest, EveryKindOfInput) {
  const auto kind_of = [](const Job& job) {
    const auto layout = LayOut(job, kVolumes);
    EXPECT_TRUE(layout.ok());
    return layout->inputs.at(0).kind;
  };
  EXPECT_EQ(kind_of(JobOf(InputKind::kFiles)), PlanKind::kFiles);
  EXPECT_EQ(kind_of(JobOf(InputKind::kJsonLines)), PlanKind::kJsonLines);
  EXPECT_EQ(kind_of(JobOf(InputKind::kTabular)), PlanKind::kDelimited);
  Job parquet = JobOf(InputKind::kTabular);
  parquet.spec.inputs[0].tabular.format = TabularFormat::kParquet;
  EXPECT_EQ(kind_of(parquet), PlanKind::kParquet);
}

TEST(PlanLayoutTest, D8PartitionKeysWinOverTheSize) {
  Job job = JobOf(InputKind::kFiles);
  job.spec.partition_keys = {"user"};
  const auto layout = LayOut(job, kVolumes);
  ASSERT_TRUE(layout.ok());
  EXPECT_EQ(layout->inputs[0].root, "/volumes/data/a/b");
  EXPECT_EQ(layout->inputs[0].partition_format, "{user}/{n}.x");
  EXPECT_THAT(layout->inputs[0].partition_keys, ElementsAre("user"));
}

TEST(PlanLayoutTest, RankMiniBatchesLeaveTheInputsWhole) {
  Job job = JobOf(InputKind::kJsonLines);
  job.spec.rank_mini_batch_count = 12;
  const auto layout = LayOut(job, kVolumes);
  ASSERT_TRUE(layout.ok());
  ASSERT_EQ(layout->inputs.size(), 1u);
  EXPECT_EQ(layout->inputs[0].kind, PlanKind::kRanks);
  EXPECT_EQ(layout->inputs[0].batch_size, 12u);
  EXPECT_EQ(layout->placeholders.at("inputs.in"), "/volumes/data/a/b");
}

TEST(PlanLayoutTest, AnInputInAStoreIsBelowItsUrl) {
  Job job = JobOf(InputKind::kFiles);
  job.spec.stores = {{"bucket", "s3://bucket/in/", "", "", {}}};
  job.spec.inputs[0].from = {"", "a/b"};
  job.spec.inputs[0].store = "bucket";
  const auto layout = LayOut(job, kVolumes);
  ASSERT_TRUE(layout.ok()) << layout.error().message;
  EXPECT_EQ(layout->inputs[0].root, "s3://bucket/in/a/b");
  EXPECT_EQ(layout->inputs[0].store, "bucket");
  EXPECT_EQ(layout->placeholders.at("inputs.in"), "s3://bucket/in/a/b");
  job.spec.inputs[0].from.path = ".";
  EXPECT_EQ(LayOut(job, kVolumes)->inputs[0].root, "s3://bucket/in");
  job.spec.stores[0].url = "s3://B_/in";
  const auto refused = LayOut(job, kVolumes);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("spec.inputs[0] (in)"));
}

TEST(PlanLayoutTest, JsonLinesCannotBeGrouped) {
  Job job = JobOf(InputKind::kJsonLines);
  job.spec.partition_keys = {"user"};
  const auto layout = LayOut(job, kVolumes);
  ASSERT_FALSE(layout.ok());
  EXPECT_EQ(layout.error().code, Code::kInvalid);
  EXPECT_THAT(layout.error().message, HasSubstr("spec.inputs[0] (in): JSON lines cannot be"));
}

}  // namespace
}  // namespace parallelrun
