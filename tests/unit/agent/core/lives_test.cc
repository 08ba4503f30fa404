#include "agent/core/lives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace parallelrun::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Kind = job::ProcessEvent::Kind;

constexpr char kNoModule[] = "ModuleNotFoundError: No module named 'foo' (score.py:1)";
constexpr Duration kTimeout = seconds(300);

std::vector<Kind> Kinds(const std::vector<Event>& events) {
  std::vector<Kind> kinds;
  for (const Event& event : events) kinds.push_back(event.kind);
  return kinds;
}

Ended In(ProcessState state) {
  Ended ended;
  ended.state = state;
  return ended;
}

TEST(Lives, OneThatCannotStartIsToldWithItsLog) {
  Lives lives(3);
  const auto end = lives.StartFailed(7, "KeyError: 'MODEL' (score.py:7)", false, true, false);
  ASSERT_THAT(Kinds(end.events), ElementsAre(Kind::kInitFailed));
  EXPECT_EQ(end.events[0].log, "user/error/3/process007.txt");
  EXPECT_FALSE(end.gives_up);
  EXPECT_EQ(lives.StartFailed(8, "killed", false, false, false).events[0].log, "");
}

TEST(Lives, AModuleThatIsNotThereEndsTheNodeUnlessOneWasReady) {
  Lives lives(0);
  const auto end = lives.StartFailed(0, kNoModule, false, true, false);
  EXPECT_THAT(Kinds(end.events), ElementsAre(Kind::kInitFailed, Kind::kGaveUp));
  EXPECT_TRUE(end.gives_up);
  lives.Ready(1, false);
  EXPECT_FALSE(lives.StartFailed(2, kNoModule, false, true, false).gives_up);
}

TEST(Lives, AScriptThatNobodyCanUseIsToldOnceAndNotWhileTheNodeEnds) {
  Lives lives(0);
  const auto end = lives.StartFailed(0, "no run()", true, true, false);
  EXPECT_THAT(Kinds(end.events), ElementsAre(Kind::kScriptUnusable));
  EXPECT_TRUE(end.gives_up);
  EXPECT_THAT(lives.StartFailed(1, "no run()", true, true, true).events, IsEmpty());
}

TEST(Lives, EndsThatCountAreEnoughAtSomeTime) {
  Lives lives(0);
  for (uint32_t i = 0; i < 2; ++i) {
    lives.Exited(i, In(ProcessState::kStarting), "exited with status 3", false, kTimeout);
  }
  lives.Exited(2, In(ProcessState::kStarting), "exited with status 3", true, kTimeout);
  EXPECT_FALSE(lives.WhyNoMore(1)) << "there was no room for the third one";
  lives.Exited(3, In(ProcessState::kStarting), "exited with status 3", false, kTimeout);
  EXPECT_THAT(lives.WhyNoMore(1).value_or(""),
              HasSubstr("3 in a row failed while starting, or ended before their first "
                        "mini-batch; the last one: while it was starting, it exited"));
}

TEST(Lives, OneThatWasReadyAndEndsIdleCountsToo) {
  Lives lives(0);
  Ended ended = In(ProcessState::kReady);
  ended.idle = true;
  for (uint32_t i = 0; i < 3; ++i) {
    lives.Ready(i, false);
    const auto events = lives.Exited(i, ended, "exited with status 3", false, kTimeout);
    EXPECT_THAT(Kinds(events), ElementsAre(Kind::kExited));
    EXPECT_EQ(events[0].log, "user/stderr/0/process00" + std::to_string(i) + ".stderr.txt");
  }
  EXPECT_TRUE(lives.WhyNoMore(1));
  lives.Answered();
  EXPECT_FALSE(lives.WhyNoMore(1));
  for (int i = 0; i < 3; ++i) lives.NeverBegan();
  EXPECT_TRUE(lives.WhyNoMore(1));
}

TEST(Lives, AShutdownIsOwedUntilItsProcessIsGone) {
  Lives lives(0);
  EXPECT_THAT(Kinds(lives.Ready(1, true)), ElementsAre(Kind::kReady, Kind::kOwes));
  EXPECT_THAT(Kinds(lives.Ready(2, true)), ElementsAre(Kind::kReady, Kind::kOwes));
  EXPECT_THAT(Kinds(lives.Ready(3, false)), ElementsAre(Kind::kReady));
  EXPECT_THAT(Kinds(lives.Owes()), ElementsAre(Kind::kOwes, Kind::kOwes));
  EXPECT_EQ(lives.Owing().message, "1 2");
  lives.Stopped(1, "");
  EXPECT_THAT(Kinds(lives.Exited(1, In(ProcessState::kStopping), "exited", false, kTimeout)),
              ElementsAre(Kind::kClosed));
  EXPECT_THAT(Kinds(lives.Exited(2, In(ProcessState::kReady), "was killed", false, kTimeout)),
              ElementsAre(Kind::kExited, Kind::kCloseLost));
  EXPECT_EQ(lives.Owing().message, "");
}

TEST(Lives, WhatDoesNotSayWhereItIsIsSaidToBeStopped) {
  const Lives lives(0);
  EXPECT_EQ(lives.Where(1, "score.py:3 in run").message, "score.py:3 in run");
  EXPECT_THAT(lives.Where(1, "").message, HasSubstr("Python does not answer"));
}

}  // namespace
}  // namespace parallelrun::agent
