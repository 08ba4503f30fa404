#include "coordinator/core/nodes.h"

#include <gtest/gtest.h>

namespace parallelrun {
namespace {

const Instant kMorning{seconds(1000)};
using Before = Nodes::Before;

TEST(Nodes, OnlyTheLastRegistrationIsInForce) {
  Nodes nodes(2);
  const Incarnation first = nodes.Register(0, "a", 0, 1, 7, kMorning).incarnation;
  EXPECT_TRUE(nodes.InForce(0, first));
  EXPECT_FALSE(nodes.InForce(1, first));
  const Incarnation second = nodes.Register(0, "a", 0, 1, 7, kMorning).incarnation;
  EXPECT_FALSE(nodes.InForce(0, first));
  EXPECT_TRUE(nodes.InForce(0, second));
  EXPECT_EQ(nodes.Find(0)->registrations, 2U);
  Nodes::Depart(*nodes.Find(0));
  EXPECT_FALSE(nodes.InForce(0, second));
  EXPECT_EQ(nodes.registered(), 0U);
}

TEST(Nodes, AnotherAgentMeansThatTheOneBeforeDiedUnlessItsPodWasReplaced) {
  Nodes nodes(1);
  EXPECT_EQ(nodes.BeforeIt(0, "a", 3), Before::kNone);
  nodes.Register(0, "a", 3, 1, 7, kMorning);
  EXPECT_EQ(nodes.BeforeIt(0, "a", 3), Before::kNone);
  EXPECT_EQ(nodes.BeforeIt(0, "b", 3), Before::kDied) << "the container was started again";
  EXPECT_EQ(nodes.BeforeIt(0, "b", 4), Before::kMayLive);
  nodes.Find(0)->ended_pod = 3;
  EXPECT_EQ(nodes.BeforeIt(0, "b", 4), Before::kDied);
}

TEST(Nodes, AnAgentWhosePlaceWasTakenMayNotComeBack) {
  Nodes nodes(1);
  nodes.Register(0, "a", 0, 1, 7, kMorning);
  nodes.Register(0, "b", 0, 1, 7, kMorning);
  EXPECT_TRUE(nodes.Superseded(0, "a", 0));
  EXPECT_FALSE(nodes.Superseded(0, "b", 0));
  EXPECT_FALSE(nodes.Superseded(0, "c", 0));
  nodes.Register(0, "d", 5, 1, 7, kMorning);
  EXPECT_TRUE(nodes.Superseded(0, "e", 4)) << "pods are numbered";
  EXPECT_FALSE(nodes.Superseded(0, "e", 6));
}

TEST(Nodes, WhoSaysNothingAndHasNoCallOpenIsForgotten) {
  Nodes nodes(2);
  nodes.Register(0, "a", 0, 1, 7, kMorning);
  nodes.Register(1, "b", 0, 1, 7, kMorning);
  const auto first_calls = [](uint32_t index) { return index == 0; };
  nodes.ForgetSilent(kMorning + seconds(10), seconds(10), first_calls);
  EXPECT_EQ(nodes.registered(), 2U);
  nodes.ForgetSilent(kMorning + seconds(11), seconds(10), first_calls);
  EXPECT_EQ(nodes.registered(), 1U);
  EXPECT_EQ(nodes.Silent(), "") << "the other one is at work";
  Nodes::Depart(*nodes.Find(0));
  EXPECT_EQ(nodes.Silent().substr(0, 28), "node 1 has said nothing: its");
  EXPECT_TRUE(nodes.AnyAtWork());
  nodes.Expect(1);
  EXPECT_EQ(nodes.Silent(), "") << "nobody waits for it";
  EXPECT_FALSE(nodes.AnyAtWork());
}

TEST(Nodes, AllAreHeardWhenEachThatIsExpectedWas) {
  Nodes nodes(2);
  nodes.Register(0, "a", 0, 1, 7, kMorning).heard = true;
  EXPECT_FALSE(nodes.AllHeard());
  nodes.GiveUp(nodes.Register(1, "b", 0, 1, 7, kMorning));
  EXPECT_FALSE(nodes.AllHeard());
  EXPECT_EQ(nodes.gave_up(), 1U);
  EXPECT_TRUE(nodes.Expected(1000)) << "nobody has said how many";
  nodes.Expect(1);
  EXPECT_TRUE(nodes.AllHeard());
  EXPECT_EQ(nodes.gave_up(), 0U);
}

}  // namespace
}  // namespace parallelrun
