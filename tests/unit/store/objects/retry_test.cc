#include "store/objects/retry.h"

#include <gtest/gtest.h>

namespace parallelrun::store {
namespace {

constexpr uint64_t kMiddling = 50'000;  // microseconds, of the first bound of 100 ms

TEST(Retry, WhatCannotGetBetterIsNotRepeated) {
  Attempts attempts;
  EXPECT_FALSE(NextWait(Outcome::kFinal, attempts, {}, std::nullopt, 0));
  EXPECT_FALSE(NextWait(Outcome::kDone, attempts, {}, std::nullopt, 0));
  EXPECT_EQ(attempts.repeated, 0);
}

TEST(Retry, TheBoundOfAWaitDoublesUpToTheLongest) {
  Attempts attempts;
  const RetryLimits limits{.most = 12, .in_all = seconds(10'000)};
  for (const int64_t bound : {100, 200, 400, 800, 1600, 3200, 6400, 12800, 15000, 15000}) {
    // The largest number that is not taken modulo.
    const uint64_t largest = static_cast<uint64_t>(Duration(milliseconds(bound)).count());
    EXPECT_EQ(NextWait(Outcome::kThrottled, attempts, limits, std::nullopt, largest),
              Duration(milliseconds(bound)));
  }
  EXPECT_EQ(attempts.repeated, 10);
}

TEST(Retry, AWaitIsARandomPartOfItsBound) {
  Attempts attempts;
  EXPECT_EQ(NextWait(Outcome::kServerFault, attempts, {}, std::nullopt, kMiddling),
            milliseconds(50));
  attempts = {};
  EXPECT_EQ(NextWait(Outcome::kBroken, attempts, {}, std::nullopt, 0), Duration{0});
  attempts = {};
  const auto wait = NextWait(Outcome::kBroken, attempts, {}, std::nullopt, UINT64_MAX);
  ASSERT_TRUE(wait);
  EXPECT_LE(*wait, milliseconds(100));
}

TEST(Retry, EndsAfterSoManyOrSoLong) {
  Attempts attempts;
  const RetryLimits limits{.most = 2};
  EXPECT_TRUE(NextWait(Outcome::kBroken, attempts, limits, std::nullopt, 0));
  EXPECT_TRUE(NextWait(Outcome::kBroken, attempts, limits, std::nullopt, 0));
  EXPECT_FALSE(NextWait(Outcome::kBroken, attempts, limits, std::nullopt, 0));
  Attempts late{.since_first = seconds(180)};
  EXPECT_TRUE(NextWait(Outcome::kBroken, late, {}, std::nullopt, 0));
  EXPECT_FALSE(NextWait(Outcome::kBroken, late, {}, std::nullopt, kMiddling));
}

TEST(Retry, TheServersOwnWordIsKeptToWithinTheLongest) {
  Attempts attempts;
  EXPECT_EQ(NextWait(Outcome::kThrottled, attempts, {}, seconds(7), kMiddling), seconds(7));
  EXPECT_EQ(NextWait(Outcome::kThrottled, attempts, {}, seconds(100'000), 0), seconds(15));
  attempts = {};
  EXPECT_EQ(NextWait(Outcome::kThrottled, attempts, {}, Duration{0}, kMiddling), milliseconds(50));
  EXPECT_EQ(ParseRetryAfter("7"), seconds(7));
  for (const char* other : {"", "-1", "1.5", "Wed, 21 Oct 2026 07:28:00 GMT", "99999999999"}) {
    EXPECT_FALSE(ParseRetryAfter(other)) << other;
  }
}

TEST(Retry, WhatWasMendedIsTriedOnceMoreAtOnce) {
  for (const Outcome outcome : {Outcome::kClockSkew, Outcome::kExpired, Outcome::kWrongRegion}) {
    Attempts attempts;
    EXPECT_EQ(NextWait(outcome, attempts, {}, std::nullopt, kMiddling), Duration{0});
    EXPECT_FALSE(NextWait(outcome, attempts, {}, std::nullopt, kMiddling));
  }
  // One does not use up the other.
  Attempts attempts;
  EXPECT_TRUE(NextWait(Outcome::kWrongRegion, attempts, {}, std::nullopt, 0));
  EXPECT_TRUE(NextWait(Outcome::kExpired, attempts, {}, std::nullopt, 0));
  EXPECT_TRUE(NextWait(Outcome::kThrottled, attempts, {}, std::nullopt, 0));
  EXPECT_EQ(attempts.repeated, 1);
}

}  // namespace
}  // namespace parallelrun::store
