#include "coordinator/looker.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>

namespace parallelrun::coordinator {
namespace {

TEST(LookerTest, WhoAsksWhileALookGoesOnGetsOneThatBeginsLater) {
  const SystemClock clock;
  std::promise<void> begun;
  std::promise<void> release;
  std::atomic<int> looks = 0;
  std::promise<Instant> second;
  Looker looker(
      clock,
      [&] {
        if (++looks == 1) {
          begun.set_value();
          release.get_future().wait();
        }
        return Status();
      },
      [&](Instant at, const Status&) {
        if (looks == 2) second.set_value(at);
      });
  looker.Ask();
  begun.get_future().wait();
  const Instant asked = clock.Now();
  looker.Ask();
  EXPECT_FALSE(looker.Finish(Duration(0))) << "the first one hangs";
  EXPECT_EQ(looks, 1);
  release.set_value();
  EXPECT_TRUE(looker.Finish(std::chrono::hours(1)));
  EXPECT_EQ(looks, 1) << "no more begins";

  Looker again(
      clock, [&] { return ++looks, Status(); },
      [&](Instant at, const Status&) { second.set_value(at); });
  again.Ask();
  EXPECT_GE(second.get_future().get(), asked);
  EXPECT_TRUE(again.Finish(std::chrono::hours(1)));
}

}  // namespace
}  // namespace parallelrun::coordinator
