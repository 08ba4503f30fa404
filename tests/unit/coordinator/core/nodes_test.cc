#include "coordinator/core/nodes.h"

#include <gtest/gtest.h>

namespace parallelrun::coordinator {
namespace {

const WorkInstant kMorning{seconds(1000)};
using Before = Nodes::Before;

TEST(Nodes, OnlyTheLastRegistrationIsInForce) {
  Nodes nodes(2);
  const job::Incarnation first = nodes.Register(0, "a", 0, 1, 7, kMorning).incarnation;
  EXPECT_TRUE(nodes.InForce(0, first));
  EXPECT_FALSE(nodes.InForce(1, first));
  const job::Incarnation second = nodes.Register(0, "a", 0, 1, 7, kMorning).incarnation;
  EXPECT_FALSE(nodes.InForce(0, first));
  EXPECT_TRUE(nodes.InForce(0, second));
  EXPECT_EQ(nodes.Find(0)->registrations, 2U);
  nodes.Depart(*nodes.Find(0));
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
  nodes.Depart(*nodes.Find(0));
  EXPECT_EQ(nodes.Silent().substr(0, 28), "node 1 has said nothing: its");
  EXPECT_TRUE(nodes.AnyAtWork());
  nodes.Expect(1);
  EXPECT_EQ(nodes.Silent(), "") << "nobody waits for it";
  EXPECT_FALSE(nodes.AnyAtWork());
}

TEST(Nodes, InInitAreThoseThatHaveWhatItNeedsAndHaveNotComeThrough) {
  Nodes nodes(3);
  EXPECT_EQ(nodes.in_init().nodes, 0U);
  nodes.Register(0, "a", 0, 1, 7, kMorning);
  nodes.Register(1, "b", 0, 1, 7, kMorning + seconds(1));
  EXPECT_EQ(nodes.in_init().nodes, 2U);
  EXPECT_EQ(nodes.in_init().first, 0U);
  EXPECT_EQ(nodes.in_init().since, kMorning);
  nodes.Ready(*nodes.Find(0));
  EXPECT_EQ(nodes.in_init().nodes, 1U);
  EXPECT_EQ(nodes.in_init().first, 1U);
  nodes.Register(0, "a", 0, 1, 7, kMorning + seconds(5));
  EXPECT_EQ(nodes.in_init().nodes, 1U) << "the same agent, whose processes live";
  nodes.Register(0, "c", 0, 1, 7, kMorning + seconds(6));
  EXPECT_EQ(nodes.in_init().nodes, 2U) << "another one";
  EXPECT_TRUE(nodes.any_ready()) << "one was";
  Nodes::Node& other = *nodes.Find(1);
  nodes.Fetches(other, "fetching a", "1");
  EXPECT_EQ(nodes.in_init().nodes, 1U);
  other.seen = kMorning + seconds(20);
  nodes.Fetches(other, "", "");
  EXPECT_EQ(nodes.in_init().nodes, 2U);
  EXPECT_EQ(nodes.in_init().since, kMorning + seconds(6));
  Nodes::Node& first = *nodes.Find(0);
  first.seen = kMorning + seconds(30);
  nodes.InitFailed(first);
  EXPECT_EQ(nodes.in_init().first, 1U);
  EXPECT_EQ(nodes.in_init().since, kMorning + seconds(20)) << "all was there";
  nodes.NoRoom(other, "no space is left");
  EXPECT_EQ(nodes.in_init().nodes, 1U);
  nodes.NoRoom(other, "");
  nodes.RanOut(other, "OSError");
  EXPECT_EQ(nodes.in_init().nodes, 1U);
  nodes.RanOut(other, "");
  EXPECT_EQ(nodes.in_init().nodes, 2U);
  nodes.GiveUp(other);
  EXPECT_EQ(nodes.in_init().nodes, 1U);
  nodes.Depart(first);
  EXPECT_EQ(nodes.in_init().nodes, 0U);
}

TEST(Nodes, TheProcessesAreThoseOfNodesThatAreThere) {
  Nodes nodes(2);
  EXPECT_EQ(nodes.processes(), 0U);
  nodes.Register(0, "a", 0, 2, 7, kMorning);
  nodes.Register(1, "b", 0, 3, 7, kMorning);
  EXPECT_EQ(nodes.processes(), 5U);
  nodes.Register(1, "b", 0, 4, 7, kMorning);
  EXPECT_EQ(nodes.processes(), 6U);
  nodes.Depart(*nodes.Find(0));
  EXPECT_EQ(nodes.processes(), 4U);
}

TEST(Nodes, ACallThatWasOpenAtATickCountsUpToIt) {
  Nodes nodes(1);
  nodes.Register(0, "a", 0, 1, 7, kMorning);
  const auto open = [](uint32_t) { return true; };
  const auto none = [](uint32_t) { return false; };
  nodes.ForgetSilent(kMorning + seconds(8), seconds(10), open);
  nodes.CallEnded(0);
  nodes.ForgetSilent(kMorning + seconds(18), seconds(10), none);
  EXPECT_EQ(nodes.registered(), 1U);
  nodes.ForgetSilent(kMorning + seconds(19), seconds(10), none);
  EXPECT_EQ(nodes.registered(), 0U);
  nodes.CallEnded(77);  // of a node that never came
}

TEST(Nodes, SilenceIsLookedForOnlyWhereItMayHaveLastedLongEnough) {
  Nodes nodes(1000);
  for (uint32_t i = 0; i < 1000; ++i) nodes.Register(i, "a", 0, 1, 7, kMorning);
  int looks = 0;
  const auto open = [&looks](uint32_t) { return ++looks > 0; };
  for (int i = 1; i <= 50; ++i)
    nodes.ForgetSilent(kMorning + milliseconds(200 * i), seconds(10), open);
  EXPECT_EQ(looks, 0);
  nodes.ForgetSilent(kMorning + seconds(11), seconds(10), open);
  EXPECT_EQ(looks, 1000);
  nodes.ForgetSilent(kMorning + seconds(12), seconds(10), open);
  EXPECT_EQ(looks, 1000);
  EXPECT_EQ(nodes.registered(), 1000U);
}

TEST(Nodes, ANodeThatRegistersAgainIsLookedForOnce) {
  Nodes nodes(1);
  int looks = 0;
  const auto none = [&looks](uint32_t) { return ++looks < 0; };
  nodes.Register(0, "a", 0, 1, 7, kMorning);
  nodes.Depart(*nodes.Find(0));
  nodes.Register(0, "a", 0, 1, 7, kMorning + seconds(5));
  nodes.ForgetSilent(kMorning + seconds(12), seconds(10), none);
  EXPECT_EQ(nodes.registered(), 1U);
  EXPECT_EQ(looks, 1);
  nodes.ForgetSilent(kMorning + seconds(16), seconds(10), none);
  EXPECT_EQ(nodes.registered(), 0U);
  EXPECT_EQ(looks, 2);
  nodes.Register(0, "a", 0, 1, 7, kMorning + seconds(20));
  nodes.ForgetSilent(kMorning + seconds(31), seconds(10), none);
  EXPECT_EQ(nodes.registered(), 0U) << "and again after it was forgotten";
}

TEST(Nodes, ANodeWithoutRoomIsNotAtWork) {
  Nodes nodes(1);
  Nodes::Node& node = nodes.Register(0, "a", 0, 1, 7, kMorning);
  nodes.NoRoom(node, "the disk is full");
  EXPECT_FALSE(nodes.AnyAtWork());
  EXPECT_EQ(nodes.WaitsFor(), "node 0: the disk is full");
  nodes.NoRoom(node, "");
  EXPECT_TRUE(nodes.AnyAtWork());
  nodes.NoRoom(node, "the disk is full");
  nodes.Register(0, "a", 0, 1, 7, kMorning);
  EXPECT_TRUE(nodes.AnyAtWork()) << "it tells anew";
}

TEST(Nodes, AllAreHeardWhenEachThatIsExpectedWas) {
  Nodes nodes(2);
  nodes.Hear(nodes.Register(0, "a", 0, 1, 7, kMorning));
  EXPECT_FALSE(nodes.AllHeard());
  nodes.GiveUp(nodes.Register(1, "b", 0, 1, 7, kMorning));
  EXPECT_FALSE(nodes.AllHeard());
  EXPECT_EQ(nodes.gave_up(), 1U);
  EXPECT_TRUE(nodes.Expected(1000)) << "nobody has said how many";
  nodes.Expect(1);
  EXPECT_TRUE(nodes.AllHeard());
  EXPECT_EQ(nodes.gave_up(), 0U);
}

TEST(Nodes, OneWithOpenOffersIsHeardOnceTheyWereCompared) {
  Nodes nodes(1);
  Nodes::Node& node = nodes.Register(0, "a", 0, 1, 7, kMorning);
  nodes.Offered(node, false);
  nodes.Hear(node);
  nodes.Hear(node);
  EXPECT_FALSE(nodes.AllHeard()) << "what it said next came without them";
  nodes.Offered(node, true);
  nodes.Hear(node);
  EXPECT_TRUE(nodes.AllHeard());
}

TEST(Nodes, OffersOfBeforeARegistrationAreNotWaitedFor) {
  Nodes nodes(1);
  nodes.Offered(nodes.Register(0, "a", 0, 1, 7, kMorning), false);
  Nodes::Node& successor = nodes.Register(0, "b", 0, 1, 7, kMorning);
  nodes.Hear(successor);
  EXPECT_TRUE(nodes.AllHeard()) << "it holds nothing, and offers nothing";
}

}  // namespace
}  // namespace parallelrun::coordinator
