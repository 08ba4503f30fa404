#include "coordinator/core/init_watch.h"

#include <gtest/gtest.h>

namespace parallelrun::coordinator {
namespace {

const WorkInstant kInitBegan{seconds(1000)};
const Nodes::InInit kTwoNodes{2, 0, kInitBegan};

TEST(InitWatch, SaysForHowLongInStepsThatGrow) {
  const InitWatch watch;
  const auto text = [&](int64_t after) {
    return watch.Text(kTwoNodes, kInitBegan + seconds(after));
  };
  EXPECT_EQ(text(9), "") << "most scripts are through";
  EXPECT_EQ(text(10), "init() has been running for 10s on 2 nodes");
  EXPECT_EQ(text(59), "init() has been running for 50s on 2 nodes");
  EXPECT_EQ(text(94), "init() has been running for 1m30s on 2 nodes");
  EXPECT_EQ(text(599), "init() has been running for 9m30s on 2 nodes");
  EXPECT_EQ(text(659), "init() has been running for 10m00s on 2 nodes");
  EXPECT_EQ(watch.Text({}, kInitBegan + seconds(94)), "");
}

TEST(InitWatch, AsksTheNodeThatIsAtItLongestEverMoreRarely) {
  InitWatch watch;
  int asked = 0;
  for (int64_t after = 0; after <= 1800; ++after) {
    if (watch.Tick(kTwoNodes, kInitBegan + seconds(after))) ++asked;
    EXPECT_FALSE(watch.Asks(1));
    const bool due =
        after == 30 || after == 60 || after == 120 || after == 240 || after == 480 || after == 960;
    EXPECT_EQ(watch.Asks(0), due) << after;
    watch.Asked(1);
    watch.Asked(0);
  }
  EXPECT_EQ(asked, 6);
}

TEST(InitWatch, AsksAgainWhenTheAnswerWasLost) {
  InitWatch watch;
  EXPECT_TRUE(watch.Tick(kTwoNodes, kInitBegan + seconds(30)));
  watch.Asked(0);
  watch.NotHeard(1);
  EXPECT_FALSE(watch.Asks(0));
  watch.NotHeard(0);
  EXPECT_TRUE(watch.Asks(0));
  watch.Asked(0);
  watch.Where(0, 0, "init score.py:3");
  watch.NotHeard(0);
  EXPECT_FALSE(watch.Asks(0)) << "it has said where it is";
}

TEST(InitWatch, SaysWhereThatNodeIsAsItSaidLast) {
  InitWatch watch;
  watch.Tick(kTwoNodes, kInitBegan + seconds(30));
  watch.Asked(0);
  watch.Where(1, 0, "elsewhere");
  watch.Where(0, 0, "init score.py:3 (score.py:3)");
  watch.Where(0, 1, "init score.py:3 (score.py:3)");
  EXPECT_EQ(watch.Text(kTwoNodes, kInitBegan + seconds(31)),
            "init() has been running for 30s on 2 nodes; node 0, process000 and 1 more: init "
            "score.py:3 (score.py:3)");
  watch.Tick(kTwoNodes, kInitBegan + seconds(60));
  watch.Asked(0);
  watch.Where(0, 1, "load model.py:7 (model.py:7)");
  EXPECT_EQ(watch.Text(kTwoNodes, kInitBegan + seconds(61)),
            "init() has been running for 1m00s on 2 nodes; node 0, process001: load model.py:7 "
            "(model.py:7)");
  // It is through; the other one is not.
  const Nodes::InInit other{1, 1, kInitBegan + seconds(5)};
  EXPECT_TRUE(watch.Tick(other, kInitBegan + seconds(62)));
  EXPECT_FALSE(watch.Tick(other, kInitBegan + seconds(63)));
  EXPECT_TRUE(watch.Asks(1));
  EXPECT_EQ(watch.Text(other, kInitBegan + seconds(63)),
            "init() has been running for 50s on 1 node");
}

}  // namespace
}  // namespace parallelrun::coordinator
