#include "store/throttling.h"

#include <gtest/gtest.h>

namespace parallelrun::store {
namespace {

constexpr WallTime kTen{seconds(1795255200)};  // 2026-11-21T10:00:00Z

TEST(ThrottlingTest, WhatLastsIsToldSinceItsBeginUntilItIsOver) {
  Throttling throttling;
  EXPECT_EQ(throttling.Text(kTen), "");
  throttling.Saw("s3://box/in", {100, 0}, kTen - seconds(1));
  throttling.Saw("s3://box/in", {120, 4}, kTen);
  EXPECT_EQ(throttling.Text(kTen), "") << "that may be over in a moment";
  throttling.Saw("s3://box/in", {130, 5}, kTen + seconds(9));
  EXPECT_EQ(throttling.Text(kTen + seconds(9)), "");
  throttling.Saw("s3://box/in", {130, 5}, kTen + seconds(20));
  EXPECT_EQ(throttling.Text(kTen + seconds(20)), "") << "no answer since";
  throttling.Saw("s3://box/in", {140, 6}, kTen + seconds(21));
  const std::string told = "throttled by the store s3://box/in since 2026-11-21T10:00:00Z";
  EXPECT_EQ(throttling.Text(kTen + seconds(21)), told);
  throttling.Saw("s3://box/in", {900, 6}, kTen + seconds(51));
  EXPECT_EQ(throttling.Text(kTen + seconds(51)), told) << "it may be waiting to ask again";
  EXPECT_EQ(throttling.Text(kTen + seconds(52)), "");
}

TEST(ThrottlingTest, ABurstNowAndThenIsNoNews) {
  Throttling throttling;
  uint64_t count = 0;
  for (WallTime at = kTen; at < kTen + seconds(600); at += seconds(32)) {
    count += 50;
    throttling.Saw("s3://box", {count, count}, at);
    count += 5;
    throttling.Saw("s3://box", {count, count}, at + seconds(1));
    EXPECT_EQ(throttling.Text(at + seconds(1)), "") << count;
  }
}

TEST(ThrottlingTest, StoresAreToldApart) {
  Throttling throttling;
  throttling.Saw("s3://a", {1, 1}, kTen);
  throttling.Saw("s3://b", {1, 1}, kTen + seconds(15));
  EXPECT_EQ(throttling.Text(kTen + seconds(15)), "");
  throttling.Saw("s3://b", {2, 2}, kTen + seconds(30));
  EXPECT_EQ(throttling.Text(kTen + seconds(30)),
            "throttled by the store s3://b since 2026-11-21T10:00:15Z");
}

TEST(ThrottlingTest, WhatIsToldIsBoundedAndEscaped) {
  Throttling throttling;
  const std::string url = "s3://\x1b" + std::string(5000, 'b');
  throttling.Saw(url, {1, 1}, kTen);
  throttling.Saw(url, {2, 2}, kTen + seconds(10));
  EXPECT_LT(throttling.Text(kTen + seconds(10)).size(), 300U);
  EXPECT_EQ(throttling.Text(kTen + seconds(10)).find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace parallelrun::store
