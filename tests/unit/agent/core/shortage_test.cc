#include "agent/core/shortage.h"

#include <gtest/gtest.h>

namespace parallelrun::agent {
namespace {

constexpr Instant kTime(seconds(100));

TEST(Shortage, WhatIsMeasuredIsNewsWhenItChanges) {
  Shortage shortage;
  EXPECT_FALSE(shortage.Measured(""));
  EXPECT_TRUE(shortage.Measured("full"));
  EXPECT_FALSE(shortage.Measured("full"));
  EXPECT_TRUE(shortage.measured());
  EXPECT_FALSE(shortage.Room(kTime));
  EXPECT_TRUE(shortage.Measured(""));
  EXPECT_TRUE(shortage.Room(kTime));
}

TEST(Shortage, ATryWaitsLongerEachTimeUpToABound) {
  Shortage shortage;
  Instant now = kTime;
  bool first = true;
  for (const int wait : {1, 2, 4, 8, 16, 30, 30}) {
    EXPECT_EQ(shortage.RanOut("no space", now), first);
    first = false;
    EXPECT_EQ(shortage.WakeAt(now), now + seconds(wait));
    EXPECT_FALSE(shortage.RanOut("no space", now)) << "at the same time: the same try";
    EXPECT_EQ(shortage.WakeAt(now), now + seconds(wait));
    EXPECT_FALSE(shortage.Room(now));
    now += seconds(wait);
    EXPECT_TRUE(shortage.Room(now));
    EXPECT_EQ(shortage.WakeAt(now), kNever);
  }
  EXPECT_TRUE(shortage.Worked());
  EXPECT_FALSE(shortage.Worked());
  EXPECT_TRUE(shortage.RanOut("no space", now));
  EXPECT_EQ(shortage.WakeAt(now), now + seconds(1));
}

TEST(Shortage, WhatRanOutWhileNoneIsMeasuredIsNoTry) {
  Shortage shortage;
  shortage.Measured("full");
  EXPECT_TRUE(shortage.RanOut("no space", kTime));
  EXPECT_EQ(shortage.WakeAt(kTime), kNever);
}

TEST(Shortage, ACoordinatorThatHasNotHeardItIsToldAllOfIt) {
  Shortage shortage;
  EXPECT_TRUE(shortage.All().empty());
  shortage.Measured("full");
  shortage.RanOut("no space", kTime);
  const std::vector<Event> all = shortage.All();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].kind, job::ProcessEvent::Kind::kNoRoom);
  EXPECT_EQ(all[0].message, "full");
  EXPECT_EQ(all[1].kind, job::ProcessEvent::Kind::kRanOut);
  EXPECT_EQ(all[1].message, "no space");
  shortage.Measured("");
  shortage.Worked();
  EXPECT_TRUE(shortage.All().empty());
}

TEST(Shortage, RoomComesAgainOnce) {
  Shortage shortage;
  EXPECT_FALSE(shortage.RoomAgain(kTime));
  shortage.Measured("full");
  EXPECT_FALSE(shortage.RoomAgain(kTime));
  shortage.Measured("");
  EXPECT_TRUE(shortage.RoomAgain(kTime));
  EXPECT_FALSE(shortage.RoomAgain(kTime));
}

}  // namespace
}  // namespace parallelrun::agent
