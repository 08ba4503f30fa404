#include "coordinator/core/program_errors.h"

#include <gtest/gtest.h>

namespace parallelrun::coordinator {
namespace {

class ProgramErrorsTest : public ::testing::Test {
 protected:
  static constexpr Instant kStart{seconds(1000)};
  static constexpr char kRaised[] = "Exception";
  static constexpr char kText[] = "NameError: name 'x' is not defined (score.py:4)";

  std::string Judge(Instant worked = kStart) const {
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
  errors_.KilledInInit(1, 4);
  EXPECT_EQ(errors_.init_failures(), 4U);
  EXPECT_NE(errors_.init_error().find("node 1 was killed for lack of memory"), std::string::npos);
}

}  // namespace
}  // namespace parallelrun::coordinator
