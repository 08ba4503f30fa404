#include "coordinator/core/program_errors.h"

#include <gtest/gtest.h>

namespace parallelrun::coordinator {
namespace {

class ProgramErrorsTest : public ::testing::Test {
 protected:
  static constexpr WorkInstant kStart{seconds(1000)};
  static constexpr char kRaised[] = "Exception";
  static constexpr char kText[] = "NameError: name 'x' is not defined (score.py:4)";

  std::string Judge(WorkInstant worked = kStart) const {
    const auto verdict =
        errors_.Judge(state_, nodes_, worked, [](job::BatchId) { return std::string(); });
    return verdict ? verdict->reason : "";
  }

  job::JobState state_;
  Nodes nodes_{2};
  ProgramErrors errors_{1, kStart};
};

TEST_F(ProgramErrorsTest, EveryProcessOfEveryNodeMustHaveFailedByIt) {
  errors_.AttemptFailed(0, 0, 1, kRaised, kText);
  errors_.AttemptFailed(0, 1, 2, kRaised, kText);  // another process of a node of one
  EXPECT_EQ(Judge(), "");
  errors_.AttemptFailed(1, 0, 2, kRaised, kText);
  EXPECT_NE(Judge(), "");
}

TEST_F(ProgramErrorsTest, ProcessesThatAreStillStartingAreNotWaitedFor) {
  ProgramErrors errors(4, kStart);  // of each of two nodes
  const auto judge = [&] {
    return errors.Judge(state_, nodes_, kStart, [](job::BatchId) { return ""; }).has_value();
  };
  for (uint32_t node : {0, 1}) errors.ProcessReady(node, 0);
  errors.ProcessReady(1, 1);
  for (job::BatchId attempt = 0; attempt < 4; ++attempt) {
    for (uint32_t node : {0, 1}) {
      EXPECT_FALSE(judge());
      errors.AttemptFailed(node, 0, attempt, kRaised, kText);
    }
  }
  EXPECT_FALSE(judge()) << "one that is ready has not said it";
  errors.AttemptFailed(1, 1, 4, kRaised, kText);
  EXPECT_TRUE(judge());
  errors.ProcessReady(0, 2);
  EXPECT_FALSE(judge());
  errors.ProcessGone(0, 2);
  EXPECT_TRUE(judge());
}

TEST_F(ProgramErrorsTest, MoreProcessesThanMiniBatches) {
  ProgramErrors errors(8, kStart);
  const auto judge = [&] {
    return errors.Judge(state_, nodes_, kStart, [](job::BatchId) { return ""; }).has_value();
  };
  job::PlanChunkRecord chunk;
  job::TabularChunk table;
  table.slices = {{0, 10, 5}, {10, 10, 5}, {20, 10, 5}};
  chunk.content = table;
  ASSERT_TRUE(state_.Apply(chunk, {}, {}).ok());
  for (uint32_t node : {0, 1}) {
    for (uint32_t process = 0; process < 6; ++process) errors.ProcessReady(node, process);
  }
  errors.AttemptFailed(0, 0, 0, kRaised, kText);
  errors.AttemptFailed(1, 0, 1, kRaised, kText);
  errors.AttemptFailed(0, 1, 2, kRaised, kText);
  EXPECT_FALSE(judge()) << "there may be more mini-batches";
  const job::PlanEndRecord end{state_.counts().planned, state_.counts().items_planned};
  ASSERT_TRUE(state_.Apply(end, {}, {}).ok());
  EXPECT_TRUE(judge());
}

TEST_F(ProgramErrorsTest, OneMiniBatchAloneMayBeWhatIsWrong) {
  errors_.AttemptFailed(0, 0, 1, kRaised, kText);
  errors_.AttemptFailed(1, 0, 1, kRaised, kText);
  EXPECT_EQ(Judge(), "");
}

TEST_F(ProgramErrorsTest, AnErrorOfTheDataSaysNothingOfTheProgram) {
  for (uint32_t node : {0, 1}) errors_.AttemptFailed(node, 0, node, kRaised, "ValueError: bad row");
  EXPECT_EQ(Judge(), "");
}

TEST_F(ProgramErrorsTest, EveryNodeThatIsExpectedMustHaveGivenUp) {
  nodes_.GiveUp(nodes_.Register(0, "a", 0, 1, 1, kStart));
  errors_.GaveUp("no module");
  EXPECT_EQ(Judge(), "");
  nodes_.GiveUp(nodes_.Register(1, "b", 0, 1, 1, kStart));
  errors_.GaveUp("a later one");
  EXPECT_EQ(Judge(), "InitFailed");
  EXPECT_EQ(errors_.init_error(), "no module");
}

TEST_F(ProgramErrorsTest, TheBudgetOfStartsIsTheWholeJobsAndNotSpentInAMoment) {
  for (int i = 0; i < 3; ++i) errors_.InitFailed("no GPU");
  EXPECT_EQ(Judge(kStart + seconds(121)), "") << "two for each process";
  errors_.InitFailed("no GPU at all");
  EXPECT_EQ(Judge(kStart + seconds(120)), "");
  EXPECT_EQ(Judge(kStart + seconds(121)), "InitFailed");
  EXPECT_EQ(errors_.init_failures(), 4U);
  EXPECT_EQ(errors_.init_error(), "no GPU at all");
  nodes_.Ready(nodes_.Register(0, "a", 0, 1, 1, kStart));
  EXPECT_EQ(Judge(kStart + seconds(121)), "") << "one has started";
}

TEST_F(ProgramErrorsTest, AContainerWithoutMemoryIsAFailedStartOfEachOfItsProcesses) {
  errors_.KilledInInit(1, 4, false);
  EXPECT_EQ(errors_.init_failures(), 4U);
  EXPECT_NE(errors_.init_error().find("node 1 was killed for lack of memory"), std::string::npos);
  errors_.KilledInInit(2, 4, true);
  EXPECT_EQ(errors_.init_failures(), 8U);
  EXPECT_NE(errors_.init_error().find("node 2 was evicted, since it used more disk"),
            std::string::npos);
}

}  // namespace
}  // namespace parallelrun::coordinator
