#include "job/rate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace parallelrun::job {
namespace {

constexpr WorkInstant kBegin{seconds(100)};
constexpr Duration kTick = milliseconds(200);

// When the mini-batches of a job end, after its begin: each process takes the next one.
std::vector<Duration> EndsOf(uint64_t processes, uint64_t total,
                             const std::function<Duration(uint64_t)>& takes) {
  std::vector<Duration> idle_from(processes);
  std::vector<Duration> ends;
  for (uint64_t number = 0; number < total; ++number) {
    Duration& first = *std::min_element(idle_from.begin(), idle_from.end());
    first += takes(number);
    ends.push_back(first);
  }
  std::sort(ends.begin(), ends.end());
  return ends;
}

// What is told of such a job: the time that is left, over the one that is, from the moment when
// `from` mini-batches are done until a tenth of the time is left.
struct Told {
  double least = 1e9;
  double most = 0;
  double rise = 0;  // the greatest, from one observation to the next; seconds
  int unknown = 0;
};

Told Tell(uint64_t processes, const std::vector<Duration>& ends, uint64_t from) {
  Rate rate;
  Told told;
  std::optional<Duration> before;
  for (Duration passed{0}; passed < ends.back() * 9 / 10; passed += kTick) {
    const auto done =
        static_cast<uint64_t>(std::upper_bound(ends.begin(), ends.end(), passed) - ends.begin());
    rate.Observe({done, processes, processes}, kBegin + passed);
    if (done < from) continue;
    const std::optional<Duration> left = rate.Remaining(ends.size());
    told.unknown += left ? 0 : 1;
    if (!left) continue;
    const double of = ToSeconds(*left) / ToSeconds(ends.back() - passed);
    told.least = std::min(told.least, of);
    told.most = std::max(told.most, of);
    if (before) told.rise = std::max(told.rise, ToSeconds(*left - *before));
    before = left;
  }
  return told;
}

// From 1 - `by` to 1 + `by`, another one each time and the same in each run.
double Spread(uint64_t number, double by) {
  const uint64_t mixed = (number + 1) * 0x9e3779b97f4a7c15U;
  return 1 - by + 2 * by * static_cast<double>(mixed >> 40) / (1 << 24);
}

Duration Times(Duration duration, double by) {
  return Duration(static_cast<int64_t>(static_cast<double>(duration.count()) * by));
}

TEST(RateTest, RateAndRemainingTime) {
  Rate rate;
  EXPECT_EQ(rate.PerSecond(), 0);
  EXPECT_FALSE(rate.Remaining(10));
  EXPECT_EQ(rate.Remaining(0), Duration(0));
  for (uint64_t i = 0; i <= 10; ++i) rate.Observe({i * 20, 4, 4}, kBegin + seconds(i));
  EXPECT_DOUBLE_EQ(rate.PerSecond(), 20);
  ASSERT_TRUE(rate.Remaining(240));
  EXPECT_NEAR(ToSeconds(*rate.Remaining(240)), 2, 0.1);
  EXPECT_EQ(rate.Remaining(200), Duration(0));
}

TEST(RateTest, ForgetsWhatIsLongAgo) {
  Rate rate;
  for (uint64_t i = 0; i <= 60; ++i) rate.Observe({i * 100, 1, 1}, kBegin + seconds(i));
  EXPECT_DOUBLE_EQ(rate.PerSecond(), 100);
  for (uint64_t i = 61; i <= 75; ++i) rate.Observe({6000, 1, 1}, kBegin + seconds(i));
  EXPECT_DOUBLE_EQ(rate.PerSecond(), 50);
  for (uint64_t i = 76; i <= 100; ++i) rate.Observe({6000, 1, 1}, kBegin + seconds(i));
  EXPECT_EQ(rate.PerSecond(), 0);
}

TEST(RateTest, LongMiniBatchesThatEndTogether) {
  const auto minute = [](uint64_t) { return Duration(seconds(60)); };
  for (const uint64_t processes : {1, 2, 3, 16}) {
    const Told told = Tell(processes, EndsOf(processes, 20 * processes + 1, minute), 1);
    EXPECT_EQ(told.unknown, 0) << processes;
    EXPECT_GT(told.least, 0.98) << processes;
    EXPECT_LT(told.most, 1.02) << processes;
    EXPECT_LT(told.rise, 1) << processes;
  }
}

TEST(RateTest, LongMiniBatchesOfWhichNoneIsAsLongAsTheOther) {
  const auto minutes = [](uint64_t number) { return Times(seconds(600), Spread(number, 0.2)); };
  for (const uint64_t processes : {2, 8, 64}) {
    const Told told = Tell(processes, EndsOf(processes, 12 * processes, minutes), 2 * processes);
    EXPECT_EQ(told.unknown, 0) << processes;
    EXPECT_GT(told.least, 0.7) << processes;
    EXPECT_LT(told.most, 1.4) << processes;
  }
}

TEST(RateTest, ShortMiniBatches) {
  for (const Duration takes : {milliseconds(5), milliseconds(130), milliseconds(1300)}) {
    const auto one = [&](uint64_t number) { return Times(takes, Spread(number, 0.3)); };
    const Told told = Tell(4, EndsOf(4, 2000, one), 40);
    EXPECT_EQ(told.unknown, 0);
    EXPECT_GT(told.least, 0.85) << takes.count();
    EXPECT_LT(told.most, 1.15) << takes.count();
  }
}

TEST(RateTest, NodesThatTellOfManyAtOnce) {
  Rate rate;
  rate.Observe({0, 8, 8}, kBegin);
  rate.Observe({60, 8, 8}, kBegin + seconds(1));
  ASSERT_TRUE(rate.Remaining(660));
  EXPECT_NEAR(ToSeconds(*rate.Remaining(660)), 10, 0.5);
}

TEST(RateTest, TheTimeBeforeTheFirstMiniBatchIsNoTimeOfAny) {
  Rate rate;
  for (int i = 0; i < 600; ++i) rate.Observe({5, 0, 2}, kBegin + seconds(i));  // init()
  rate.Observe({5, 2, 2}, kBegin + seconds(600));
  EXPECT_FALSE(rate.Remaining(15));
  rate.Observe({7, 2, 2}, kBegin + seconds(610));
  EXPECT_EQ(rate.Remaining(15), Duration(seconds(40)));
}

TEST(RateTest, MoreProcessesNeedLessTimeAtOnce) {
  Rate rate;
  for (uint64_t i = 0; i <= 10; ++i) rate.Observe({2 * i, 2, 2}, kBegin + seconds(60 * i));
  EXPECT_EQ(rate.Remaining(60), Duration(seconds(20 * 60)));
  rate.Observe({20, 4, 4}, kBegin + seconds(600));
  EXPECT_EQ(rate.Remaining(60), Duration(seconds(10 * 60)));
  rate.Observe({20, 0, 0}, kBegin + seconds(601));
  EXPECT_FALSE(rate.Remaining(60)) << "nobody is there";
}

TEST(RateTest, NothingIsToldOnceTheLastOneIsLate) {
  Rate rate;
  for (uint64_t i = 0; i <= 9; ++i) rate.Observe({i, 1, 1}, kBegin + seconds(60 * i));
  rate.Observe({9, 1, 1}, kBegin + seconds(580));
  EXPECT_EQ(rate.Remaining(10), Duration(seconds(20)));
  rate.Observe({9, 1, 1}, kBegin + seconds(680));
  EXPECT_FALSE(rate.Remaining(10));
  // Where others follow it, they are expected to be late, too.
  const std::optional<Duration> left = rate.Remaining(19);
  ASSERT_TRUE(left);
  EXPECT_GT(*left, Duration(seconds(60 * 9)));
}

TEST(GrantLimitTest, BigLeasesFirstSingleOnesAtTheTail) {
  EXPECT_EQ(GrantLimit(1000, 0, 2, 4), 0u);
  EXPECT_EQ(GrantLimit(0, 10, 2, 4), 0u);
  EXPECT_EQ(GrantLimit(1000, 400, 2, 4), 100u);
  EXPECT_EQ(GrantLimit(50, 400, 2, 4), 50u);
  EXPECT_EQ(GrantLimit(50, 1, 2, 4), 1u);
}

}  // namespace
}  // namespace parallelrun::job
