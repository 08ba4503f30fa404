#include "agent/objects/connections.h"

#include <gtest/gtest.h>

namespace parallelrun::agent {
namespace {

constexpr Instant kBegin{seconds(1000)};

TEST(ConnectionsTest, OneMoreAtATimeWhileAllAreInUse) {
  Connections connections;
  EXPECT_EQ(connections.allowed(), 16U);
  connections.Saw({15, 0}, true, kBegin);
  EXPECT_EQ(connections.allowed(), 16U) << "not each of them has answered";
  connections.Saw({16, 0}, true, kBegin);
  EXPECT_EQ(connections.allowed(), 17U);
  connections.Saw({1000, 0}, true, kBegin + milliseconds(99));
  EXPECT_EQ(connections.allowed(), 17U) << "too soon";
  connections.Saw({1000, 0}, false, kBegin + milliseconds(100));
  EXPECT_EQ(connections.allowed(), 17U) << "there is nothing to ask for";
  connections.Saw({1000, 0}, true, kBegin + milliseconds(100));
  EXPECT_EQ(connections.allowed(), 18U);
  for (uint64_t i = 1; i <= 100; ++i) {
    connections.Saw({1000 + 100 * i, 0}, true, kBegin + seconds(static_cast<int64_t>(i)));
  }
  EXPECT_EQ(connections.allowed(), Connections::kMost);
}

TEST(ConnectionsTest, HalfAsManyForEachRefusalButOnlyOnceForThoseThatCameTogether) {
  Connections connections;
  connections.Saw({100, 1}, true, kBegin);
  EXPECT_EQ(connections.allowed(), 8U);
  connections.Saw({200, 9}, true, kBegin + milliseconds(999));
  EXPECT_EQ(connections.allowed(), 8U);
  connections.Saw({300, 10}, false, kBegin + seconds(1));
  EXPECT_EQ(connections.allowed(), 4U);
  for (uint64_t i = 2; i < 10; ++i) {
    connections.Saw({300 + i, 10 + i}, true, kBegin + seconds(static_cast<int64_t>(i)));
  }
  EXPECT_EQ(connections.allowed(), 1U)
      << "one is always left, which finds out whether that is over";
  const Instant over = kBegin + seconds(9);  // the last refusal
  connections.Saw({400, 19}, true, over + milliseconds(999));
  EXPECT_EQ(connections.allowed(), 1U);
  connections.Saw({400, 19}, true, over + seconds(1));
  EXPECT_EQ(connections.allowed(), 2U);
  connections.Saw({500, 19}, true, over + milliseconds(1999));
  EXPECT_EQ(connections.allowed(), 2U) << "one each second, behind a refusal";
  connections.Saw({500, 19}, true, over + seconds(2));
  EXPECT_EQ(connections.allowed(), 3U);
}

TEST(ConnectionsTest, TheyStayNearWhatAStoreAllows) {
  for (const size_t allows : {1U, 10U, 30U}) {
    Connections connections;
    store::AnswerCounts answers;
    Instant now = kBegin;
    for (int second = 0; second < 300; ++second, now += seconds(1)) {
      answers.all += 1000;
      if (connections.allowed() > allows) ++answers.throttled;
      connections.Saw(answers, true, now);
      if (second < 60) continue;
      EXPECT_LE(connections.allowed(), allows + 1) << second;
      EXPECT_GE(connections.allowed(), (allows + 1) / 2) << second;
    }
  }
}

}  // namespace
}  // namespace parallelrun::agent
