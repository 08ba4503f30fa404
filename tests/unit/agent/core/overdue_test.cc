#include "agent/core/overdue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace parallelrun::agent {
namespace {

using ::testing::HasSubstr;

constexpr Instant kBegan(seconds(100));

Registration Limits() {
  Registration terms;
  terms.run_timeout = seconds(60);
  terms.overhead_timeout = seconds(600);
  return terms;
}

TEST(Overdue, EachPhaseHasItsLimit) {
  struct Case {
    Phase phase;
    Duration limit;
    job::Cause cause;
    const char* words;
  };
  for (const Case& one :
       {Case{Phase::kLoading, seconds(600), job::Cause::kOverheadTimeout, "loading the mini-batch"},
        Case{Phase::kRun, seconds(60), job::Cause::kRunTimeout, "run() took longer than 1m00s"},
        Case{Phase::kRows, seconds(600), job::Cause::kOverheadTimeout, "into rows took longer"}}) {
    const StatusReading page{7, one.phase, kBegan};
    const Instant last = kBegan + one.limit;
    EXPECT_FALSE(OverdueAtWork(3, page, Limits(), last));
    const auto overdue = OverdueAtWork(3, page, Limits(), last + milliseconds(1));
    ASSERT_TRUE(overdue);
    EXPECT_EQ(overdue->sequence, 7U);
    EXPECT_EQ(overdue->cause, one.cause);
    EXPECT_EQ(overdue->run_ns, one.phase == Phase::kRun ? 60'001'000'000U : 0U);
    EXPECT_THAT(overdue->message, HasSubstr(one.words));
    EXPECT_THAT(overdue->message, HasSubstr("process003 was killed"));
  }
}

TEST(Overdue, InFlightCountsFromTheHandOut) {
  EXPECT_FALSE(OverdueInFlight(0, 7, kBegan, Limits(), kBegan + seconds(60)));
  const auto overdue = OverdueInFlight(0, 7, kBegan, Limits(), kBegan + seconds(61));
  ASSERT_TRUE(overdue);
  EXPECT_EQ(overdue->sequence, 7U);
  EXPECT_EQ(overdue->cause, job::Cause::kRunTimeout);
  EXPECT_EQ(overdue->run_ns, 61'000'000'000U);
}

TEST(Overdue, WhoBeginsWithNothingHasTheLimitFromWhatCameLast) {
  const Instant late = kBegan + seconds(300);
  const StatusReading page{0, Phase::kWaiting, kBegan};
  EXPECT_FALSE(OverdueToBegin({0, 0, kBegan, kBegan, true}, page, Limits(), kBegan + seconds(9999)))
      << "it holds nothing";
  for (const Holding& holding :
       {Holding{0, 2, late, kBegan, true}, Holding{0, 2, kBegan, late, true}}) {
    EXPECT_FALSE(OverdueToBegin(holding, page, Limits(), late + seconds(600)));
    EXPECT_TRUE(OverdueToBegin(holding, page, Limits(), late + seconds(601)));
  }
  const StatusReading moved{0, Phase::kWaiting, late};
  const Holding holding{0, 2, kBegan, kBegan, false};
  EXPECT_FALSE(OverdueToBegin(holding, moved, Limits(), late + seconds(600)));
  const auto overdue = OverdueToBegin(holding, moved, Limits(), late + seconds(601));
  ASSERT_TRUE(overdue);
  EXPECT_EQ(overdue->sequence, 0U) << "none is to blame";
  EXPECT_THAT(overdue->message, HasSubstr("a thread that init() left behind"));
}

}  // namespace
}  // namespace parallelrun::agent
