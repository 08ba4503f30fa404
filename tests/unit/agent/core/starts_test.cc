#include "agent/core/starts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/core/agent_types.h"

namespace parallelrun::agent {
namespace {

TEST(Starts, NamesComeFromTheRangeThatWasGranted) {
  Starts starts;
  EXPECT_FALSE(starts.Next()) << "no registration yet";
  starts.Grant(2000);
  for (uint32_t i = 0; i < kProcessRange; ++i) ASSERT_EQ(starts.Next(), 2000 + i);
  EXPECT_FALSE(starts.Next());
  starts.Grant(5000);
  EXPECT_EQ(starts.Next(), 5000U);
}

// By a coordinator that could not know of the epoch before.
TEST(Starts, ARangeThatIsGrantedAgainGoesOnWhereItWas) {
  Starts starts;
  starts.Grant(1000);
  EXPECT_EQ(starts.Next(), 1000U);
  EXPECT_EQ(starts.Next(), 1001U);
  starts.Grant(1000);
  EXPECT_EQ(starts.Next(), 1002U);
  starts.Grant(0);
  EXPECT_EQ(starts.Next(), 0U);
}

TEST(Starts, ThreeTimesTheProcessesInARowAreEnough) {
  Starts starts;
  for (int i = 0; i < 5; ++i) starts.Failed("");
  EXPECT_FALSE(starts.Enough(2));
  starts.Ready();
  for (int i = 0; i < 5; ++i) starts.Failed("");
  EXPECT_FALSE(starts.Enough(2)) << "one became ready between them";
  starts.Failed("");
  EXPECT_TRUE(starts.Enough(2));
  EXPECT_THAT(starts.WhyEnough(), testing::HasSubstr("6 in a row"));
}

TEST(Starts, TheLastOnesWordsStandInWhy) {
  Starts starts;
  starts.Failed("ImportError: no module named foo (score.py:1)");
  starts.Failed("KeyError: 'MODEL' (score.py:7)");
  EXPECT_THAT(starts.WhyEnough(),
              testing::EndsWith("; the last one: KeyError: 'MODEL' (score.py:7)"));
  starts.EndedIdle("it exited with status 3");
  EXPECT_THAT(starts.WhyEnough(), testing::EndsWith("; the last one: it exited with status 3"));
}

TEST(Starts, WhoEndsBeforeItsFirstMiniBatchCountsApart) {
  Starts starts;
  for (int i = 0; i < 2; ++i) {
    starts.EndedIdle("");
    starts.Ready();
  }
  EXPECT_FALSE(starts.Enough(1));
  starts.EndedIdle("");
  EXPECT_TRUE(starts.Enough(1));
  starts.Answered();
  EXPECT_FALSE(starts.Enough(1));
}

}  // namespace
}  // namespace parallelrun::agent
