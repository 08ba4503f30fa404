#include "base/processors.h"

#include <gtest/gtest.h>

namespace parallelrun {
namespace {

TEST(ProcessorsTest, TheQuotaOfAGroupIsTimeOverPeriod) {
  EXPECT_EQ(CoreQuota("150000 100000\n"), 1.5);
  EXPECT_EQ(CoreQuota("400000 100000"), 4.0);
  for (const char* none : {"max 100000\n", "", "1", "1 ", "5 0", "5,1", "x y", "5 x"}) {
    EXPECT_EQ(CoreQuota(none), std::nullopt) << none;
  }
}

TEST(ProcessorsTest, AsManyAtOnceAsThereIsTimeForAndOneAtLeast) {
  EXPECT_EQ((Processors{8, std::nullopt}.AtOnce()), 8U);
  EXPECT_EQ((Processors{8, 2.9}.AtOnce()), 2U);
  EXPECT_EQ((Processors{2, 16.0}.AtOnce()), 2U);
  EXPECT_EQ((Processors{8, 0.1}.AtOnce()), 1U);
}

TEST(ProcessorsTest, ThisMachineHasSome) {
  EXPECT_GE(FindProcessors().cores, 1U);
  EXPECT_GE(FindProcessors().AtOnce(), 1U);
}

}  // namespace
}  // namespace parallelrun
