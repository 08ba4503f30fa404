#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>

#include <algorithm>

#include "cli/run/early_signals.h"
#include "cli/run/hangups.h"

namespace parallelrun::cli {
namespace {

TEST(HangupsTest, TwoWithinASecondAreOne) {
  const Instant start = Instant() + seconds(100);
  Hangups hangups;
  EXPECT_FALSE(hangups.IsRepeated(SIGHUP, start));
  EXPECT_TRUE(hangups.IsRepeated(SIGHUP, start + milliseconds(900)));
  EXPECT_FALSE(hangups.IsRepeated(SIGINT, start + milliseconds(950))) << "people press that";
  EXPECT_FALSE(hangups.IsRepeated(SIGINT, start + milliseconds(960)));
  EXPECT_FALSE(hangups.IsRepeated(SIGHUP, start + milliseconds(1000)));
  EXPECT_TRUE(hangups.IsRepeated(SIGHUP, start + milliseconds(1999)));
}

// Whoever started the tests may have them ignore some.
class EarlySignalsTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const int signo : {SIGHUP, SIGINT, SIGTERM}) signal(signo, SIG_DFL);
  }
};

TEST_F(EarlySignalsTest, WhatIsIgnoredStaysSo) {
  for (const int ignored : {SIGHUP, SIGINT, SIGTERM}) {
    signal(ignored, SIG_IGN);
    {
      const EarlySignals early;
      EXPECT_EQ(std::count(early.heard().begin(), early.heard().end(), ignored), 0);
      EXPECT_EQ(early.heard().size(), 2U);
      raise(ignored);
      EXPECT_EQ(early.came(), 0);
    }
    struct sigaction now {};
    sigaction(ignored, nullptr, &now);
    EXPECT_EQ(now.sa_handler, SIG_IGN);
    signal(ignored, SIG_DFL);
  }
}

TEST_F(EarlySignalsTest, AHangupThatComesTwiceIsKeptOnce) {
  const EarlySignals early;
  raise(SIGHUP);
  raise(SIGHUP);
  EXPECT_EQ(early.came(), SIGHUP);
  pollfd readable{early.fd(), POLLIN, 0};
  EXPECT_EQ(poll(&readable, 1, 0), 1);
}

}  // namespace
}  // namespace parallelrun::cli
