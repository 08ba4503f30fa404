#include "base/suspension.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <time.h>

#include <thread>

#include "base/event_loop.h"

namespace parallelrun {
namespace {

// Of CLOCK_MONOTONIC, as other processes tell it.
Instant Told() {
  timespec ts{};
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return Instant(seconds(ts.tv_sec) + microseconds(ts.tv_nsec / 1000));
}

void WaitUntil(Instant told) {
  while (Told() < told) std::this_thread::yield();
}

TEST(Suspension, TimeStandsStillAndGoesOnFromThere) {
  const SystemClock clock;
  const Instant told_before = Told();
  const Instant before = suspension::OwnTime(told_before);
  suspension::StopTime();
  const Instant at = clock.Now();
  EXPECT_GE(at, before);
  const Instant told_within = Told() + milliseconds(3);
  WaitUntil(told_within);
  EXPECT_EQ(clock.Now(), at);
  EXPECT_EQ(suspension::OwnTime(told_within), at);
  suspension::StopTime();  // it does already
  EXPECT_EQ(clock.Now(), at);
  suspension::ResumeTime();
  const Instant told_after = Told();
  const Instant after = clock.Now();
  EXPECT_GE(after, at);
  EXPECT_GE(after, suspension::OwnTime(told_after));
  EXPECT_LE(after, suspension::OwnTime(Told()));
  // What went by meanwhile does not count, and what was told before and within stays.
  EXPECT_GE(told_after - told_before, suspension::OwnTime(told_after) - before + milliseconds(3));
  EXPECT_EQ(suspension::OwnTime(told_before), before);
  EXPECT_EQ(suspension::OwnTime(told_within), at);
}

TEST(Suspension, TimersWait) {
  EventLoop loop;
  suspension::StopTime();
  bool resumed = false;
  bool resumed_when_fired = false;
  loop.After(milliseconds(1), [&] {
    resumed_when_fired = resumed;
    loop.Stop();
  });
  const Instant from = Told();
  std::thread other([&] {
    WaitUntil(from + milliseconds(20));
    loop.Post([&] {
      resumed = true;
      suspension::ResumeTime();
    });
  });
  loop.Run();
  other.join();
  EXPECT_TRUE(resumed_when_fired);
}

TEST(Suspension, AContinueBeforeTheStopIsNotLost) {
  std::thread([] {
    suspension::HoldContinue();
    pthread_kill(pthread_self(), SIGCONT);
    suspension::AwaitContinue();
    pthread_kill(pthread_self(), SIGCONT);
    suspension::StopThisProcess();  // or this test would hang
  }).join();
}

}  // namespace
}  // namespace parallelrun
