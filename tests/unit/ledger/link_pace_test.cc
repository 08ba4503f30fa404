// How fast a chain grows.
#include "ledger/link_pace.h"

#include <gtest/gtest.h>

namespace parallelrun::ledger {
namespace {

constexpr Duration kAtOnce{0};

Instant At(double seconds) { return Instant{} + Duration(static_cast<int64_t>(seconds * 1e6)); }

TEST(LinkPaceTest, AnAllowanceIsUsedAtOnceAndThenGrows) {
  LinkPace pace({3, 1, 1000}, 0);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(pace.WaitFor(At(10), 1, false), kAtOnce);
    pace.Count(At(10));
  }
  const Duration wait = pace.WaitFor(At(10.25), 1, false);
  EXPECT_GE(wait, milliseconds(750));
  EXPECT_LE(wait, milliseconds(751));
  EXPECT_EQ(pace.WaitFor(At(10.25) + wait, 1, false), kAtOnce) << "who comes then goes";
  pace.Count(At(11.1));
  EXPECT_GT(pace.WaitFor(At(11.2), 1, false), kAtOnce);
}

TEST(LinkPaceTest, WhatAChainHasAlreadyIsUsedUp) {
  LinkPace some({3, 1, 1000}, 2);
  EXPECT_EQ(some.WaitFor(At(0), 1, false), kAtOnce);
  some.Count(At(0));
  EXPECT_GT(some.WaitFor(At(0), 1, false), kAtOnce);
  LinkPace all({3, 1, 1000}, 500);
  EXPECT_GT(all.WaitFor(At(0), 1, false), kAtOnce);
  EXPECT_EQ(all.WaitFor(At(1.1), 1, false), kAtOnce);
}

TEST(LinkPaceTest, WhatIsLargeOrWaitedForGoesAtOnce) {
  LinkPace pace({0, 1, 1000}, 0);
  EXPECT_GT(pace.WaitFor(At(0), 999, false), kAtOnce);
  EXPECT_EQ(pace.WaitFor(At(0), 1000, false), kAtOnce);
  EXPECT_EQ(pace.WaitFor(At(0), 1, true), kAtOnce);
  pace.Count(At(0));
  // It takes nothing from what comes later.
  EXPECT_EQ(pace.WaitFor(At(1.1), 1, false), kAtOnce);
}

TEST(LinkPaceTest, ItGrowsToItsAllowanceAndNoFurther) {
  LinkPace pace({2, 1, 1000}, 0);
  EXPECT_EQ(pace.WaitFor(At(0), 1, false), kAtOnce);
  for (int i = 0; i < 2; ++i) pace.Count(At(1000));
  EXPECT_GT(pace.WaitFor(At(1000), 1, false), kAtOnce);
  // A clock that a host sets back is no reason to wait for longer.
  EXPECT_LE(pace.WaitFor(At(990), 1, false), milliseconds(1001));
}

}  // namespace
}  // namespace parallelrun::ledger
