#include "coordinator/core/waiters.h"

#include <gmock/gmock.h>

namespace parallelrun::coordinator {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const Instant kNow{seconds(1000)};

class WaitersTest : public ::testing::Test {
 protected:
  uint64_t Park(uint32_t node, uint32_t want, Duration park, uint64_t position = 0) {
    Waiter waiter;
    waiter.exchange = waiters_.Name();
    waiter.node = node;
    waiter.want = want;
    waiter.park_until = kNow + park;
    waiter.position = position;
    const uint64_t name = waiter.exchange;
    waiters_.Add(std::move(waiter));
    EXPECT_THAT(Woken(), ElementsAre(name));
    return name;
  }
  // In their order. Each waits on.
  std::vector<uint64_t> Woken(bool work = false) {
    std::vector<uint64_t> woken;
    uint64_t last = 0;
    while (const Waiter* waiter = waiters_.Next(last, work)) {
      last = waiter->exchange;
      woken.push_back(last);
      waiters_.Wait(*waiter, waiter->position <= waiters_.durable());
    }
    waiters_.AllSeen();
    return woken;
  }

  Waiters waiters_;
};

TEST_F(WaitersTest, ASyncWakesWhatWaitedForItAndNobodyElse) {
  const uint64_t late = Park(0, 1, seconds(9), 30);
  const uint64_t early = Park(1, 1, seconds(9), 10);
  Park(2, 1, seconds(9));
  waiters_.Durable(9);
  EXPECT_THAT(Woken(), IsEmpty());
  waiters_.Durable(10);
  EXPECT_THAT(Woken(), ElementsAre(early));
  waiters_.Durable(50);
  EXPECT_THAT(Woken(), ElementsAre(late));
}

TEST_F(WaitersTest, AParkEndsAtItsTime) {
  const uint64_t second = Park(0, 1, seconds(2));
  const uint64_t first = Park(1, 0, seconds(1));
  waiters_.ParksOver(kNow + seconds(1) - Duration(1));
  EXPECT_THAT(Woken(), IsEmpty());
  waiters_.ParksOver(kNow + seconds(1));
  EXPECT_THAT(Woken(), ElementsAre(first));
  waiters_.ParksOver(kNow + seconds(2));
  EXPECT_THAT(Woken(), ElementsAre(second, first)) << "who waits on is woken again";
}

TEST_F(WaitersTest, WorkWakesTheHungryInTheOrderInWhichTheyCame) {
  const uint64_t one = Park(5, 1, seconds(9));
  Park(4, 0, seconds(9));
  const uint64_t two = Park(3, 1, seconds(9));
  Park(2, 1, seconds(9), 10);
  waiters_.WakeHungry();
  EXPECT_THAT(Woken(false), IsEmpty());
  waiters_.WakeHungry();
  EXPECT_THAT(Woken(true), ElementsAre(one, two));
  EXPECT_THAT(Woken(true), IsEmpty()) << "they had their turn";
}

TEST_F(WaitersTest, WhoIsReleasedIsAnsweredBeforeWhoCameLaterAndGetsNoWork) {
  const uint64_t older = Park(0, 3, seconds(9));
  Park(1, 3, seconds(9));
  waiters_.Release(0, kNow);
  Waiter newer;
  newer.exchange = waiters_.Name();
  newer.node = 0;
  waiters_.Add(std::move(newer));
  ASSERT_EQ(waiters_.Next(0, false)->exchange, older);
  EXPECT_EQ(waiters_.Next(0, false)->want, 0U);
  EXPECT_EQ(waiters_.Next(0, false)->park_until, kNow);
  waiters_.WakeHungry();
  EXPECT_THAT(Woken(true), ElementsAre(older, 2, 3));
}

TEST_F(WaitersTest, WhoseConnectionIsGoneIsNotWoken) {
  const uint64_t gone = Park(0, 1, seconds(1), 10);
  const uint64_t other = Park(0, 1, seconds(1));
  EXPECT_EQ(waiters_.Gone(gone), 0U);
  EXPECT_FALSE(waiters_.Gone(gone));
  EXPECT_TRUE(waiters_.Has(0));
  waiters_.Durable(10);
  waiters_.WakeAll();
  EXPECT_THAT(Woken(true), ElementsAre(other));
  waiters_.Gone(other);
  EXPECT_FALSE(waiters_.Has(0));
}

}  // namespace
}  // namespace parallelrun::coordinator
