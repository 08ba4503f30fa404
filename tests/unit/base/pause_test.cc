#include "base/pause.h"

#include <gtest/gtest.h>

#include <chrono>

#include "base/thread.h"

namespace parallelrun {
namespace {

constexpr std::chrono::hours kForever{24};

TEST(PauseTest, WithoutAStopTheTimeIsOver) {
  const std::stop_source nobody_asks;
  EXPECT_TRUE(Pause(milliseconds(1), nobody_asks.get_token()));
  EXPECT_TRUE(Pause(milliseconds(1), {})) << "a token that nobody can ask";
}

TEST(PauseTest, AStopOfBeforeIsSeen) {
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(Pause(kForever, stop.get_token()));
  EXPECT_FALSE(Pause(Duration(0), stop.get_token()));
}

TEST(PauseTest, AStopEndsIt) {
  std::stop_source stop;
  bool over = true;
  Thread waits("pause", [&] { over = Pause(kForever, stop.get_token()); });
  stop.request_stop();
  waits.join();
  EXPECT_FALSE(over);
}

}  // namespace
}  // namespace parallelrun
