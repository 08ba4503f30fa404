#include "agent/core/ending.h"

#include <gtest/gtest.h>

namespace parallelrun::agent {
namespace {

using Then = Ending::Then;
constexpr Instant kAsked(seconds(100));

TEST(Ending, ADrainReturnsAndHasATimeByWhichItIsOver) {
  Ending ending;
  EXPECT_FALSE(ending.begun());
  EXPECT_EQ(ending.Begin(AgentEnd::kDrained, seconds(25), "", kAsked), Then::kReturn);
  EXPECT_TRUE(ending.draining());
  EXPECT_FALSE(ending.Late(kAsked + seconds(24)));
  EXPECT_TRUE(ending.Late(kAsked + seconds(25)));
  EXPECT_EQ(ending.StopBy(seconds(300), seconds(30), kAsked), kAsked + seconds(25));
  // Nobody answers: two seconds for the last reports.
  ending.NoProcessLeft(false, true, kAsked + seconds(26));
  EXPECT_FALSE(ending.done());
  EXPECT_EQ(ending.end(), AgentEnd::kNone);
  ending.NoProcessLeft(false, true, kAsked + seconds(27));
  EXPECT_EQ(ending.end(), AgentEnd::kDrained);
}

TEST(Ending, ItIsDoneOnceAllIsSaid) {
  Ending ending;
  ending.Begin(AgentEnd::kDrained, seconds(25), "", kAsked);
  ending.NoProcessLeft(true, true, kAsked);
  EXPECT_EQ(ending.end(), AgentEnd::kDrained);
}

TEST(Ending, WithoutARegistrationThereIsNobodyToSayItTo) {
  Ending ending;
  ending.Begin(AgentEnd::kDrained, seconds(25), "", kAsked);
  ending.NoProcessLeft(false, false, kAsked);
  EXPECT_TRUE(ending.done());
}

TEST(Ending, WhatBeganStaysTheReasonAndMayOnlyBeHurried) {
  Ending ending;
  ending.Begin(AgentEnd::kDrained, seconds(25), "", kAsked);
  EXPECT_EQ(ending.Begin(AgentEnd::kGaveUp, seconds(0), "why", kAsked), Then::kNothing);
  EXPECT_TRUE(ending.draining());
  EXPECT_FALSE(ending.Late(kAsked));
  ending.Hurry(seconds(99), kAsked);
  EXPECT_TRUE(ending.Late(kAsked + seconds(25)));
  ending.Hurry(seconds(0), kAsked);
  EXPECT_TRUE(ending.Late(kAsked));
}

TEST(Ending, WhoGaveUpSaysSoThoughTheJobEndsMeanwhile) {
  Ending ending;
  EXPECT_EQ(ending.Begin(AgentEnd::kGaveUp, seconds(25), "no init", kAsked), Then::kReturn);
  EXPECT_FALSE(ending.Mute()) << "the coordinator must hear of it";
  ending.NoProcessLeft(false, true, kAsked + seconds(9999));
  EXPECT_FALSE(ending.done());
  EXPECT_EQ(ending.Begin(AgentEnd::kFinished, seconds(0), "", kAsked), Then::kDrop);
  EXPECT_EQ(ending.message(), "no init");
  ending.NoProcessLeft(true, true, kAsked);
  EXPECT_EQ(ending.end(), AgentEnd::kGaveUp);
}

TEST(Ending, WhenTheJobIsOverShutdownHasItsWholeLimit) {
  Ending ending;
  EXPECT_EQ(ending.Begin(AgentEnd::kFinished, seconds(0), "", kAsked), Then::kDrop);
  EXPECT_TRUE(ending.Mute());
  EXPECT_EQ(ending.StopBy(seconds(300), seconds(30), kAsked), kAsked + seconds(30));
  EXPECT_EQ(ending.StopBy(seconds(5), seconds(30), kAsked), kAsked + seconds(5));
  EXPECT_EQ(ending.Begin(AgentEnd::kLost, seconds(0), "", kAsked), Then::kNothing);
  ending.NoProcessLeft(false, true, kAsked);
  EXPECT_EQ(ending.end(), AgentEnd::kFinished);
}

}  // namespace
}  // namespace parallelrun::agent
