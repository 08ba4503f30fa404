#include "agent/core/ending.h"

#include <gtest/gtest.h>

namespace parallelrun::agent {
namespace {

using Then = Ending::Then;
constexpr Instant kAsked(seconds(100));

Ending::Stay Stay(const Ending& ending, Instant now) {
  return ending.ProcessesStay(seconds(300), seconds(30), now);
}

TEST(Ending, ClosingBeginsOnceAndIsForgottenForANewCoordinator) {
  Ending ending;
  EXPECT_TRUE(ending.Close(kAsked));
  EXPECT_FALSE(ending.Close(kAsked + seconds(5)));
  EXPECT_TRUE(ending.begins_nothing());
  EXPECT_FALSE(ending.begun());
  EXPECT_EQ(Stay(ending, kAsked + seconds(5)).stop_by, kAsked + seconds(300));
  EXPECT_FALSE(Stay(ending, kAsked + seconds(299)).over);
  EXPECT_TRUE(Stay(ending, kAsked + seconds(300)).over);
  ending.Reopen();
  EXPECT_FALSE(ending.begins_nothing());
}

TEST(Ending, WhatClosesAndIsDrainedHasTheEarlierOfBothTimes) {
  Ending ending;
  ending.Close(kAsked);
  ending.Begin(AgentEnd::kDrained, seconds(25), "", kAsked);
  EXPECT_EQ(Stay(ending, kAsked).stop_by, kAsked + seconds(25));
  EXPECT_TRUE(Stay(ending, kAsked + seconds(25)).over);
  Ending drained;
  drained.Begin(AgentEnd::kDrained, seconds(25), "", kAsked);
  EXPECT_FALSE(drained.Close(kAsked)) << "it ends anyway";
}

TEST(Ending, ADrainReturnsAndHasATimeByWhichItIsOver) {
  Ending ending;
  EXPECT_FALSE(ending.begun());
  EXPECT_EQ(ending.Begin(AgentEnd::kDrained, seconds(25), "", kAsked), Then::kReturn);
  EXPECT_TRUE(ending.draining());
  EXPECT_FALSE(Stay(ending, kAsked + seconds(24)).over);
  EXPECT_TRUE(Stay(ending, kAsked + seconds(25)).over);
  EXPECT_EQ(Stay(ending, kAsked).stop_by, kAsked + seconds(25));
  EXPECT_EQ(Stay(ending, kAsked).hung, Instant::min()) << "somebody waits for what it finishes";
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
  EXPECT_FALSE(Stay(ending, kAsked).over);
  ending.Hurry(seconds(99), kAsked);
  EXPECT_TRUE(Stay(ending, kAsked + seconds(25)).over);
  ending.Hurry(seconds(0), kAsked);
  EXPECT_TRUE(Stay(ending, kAsked).over);
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
  EXPECT_EQ(Stay(ending, kAsked).stop_by, kAsked + seconds(30));
  EXPECT_EQ(ending.ProcessesStay(seconds(5), seconds(30), kAsked).stop_by, kAsked + seconds(5));
  EXPECT_EQ(Stay(ending, kAsked).hung, kAsked - seconds(1));
  EXPECT_EQ(ending.Begin(AgentEnd::kLost, seconds(0), "", kAsked), Then::kNothing);
  ending.NoProcessLeft(false, true, kAsked);
  EXPECT_EQ(ending.end(), AgentEnd::kFinished);
}

}  // namespace
}  // namespace parallelrun::agent
