#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/core/agent_core.h"
#include "tests/unit/agent/core/harness.h"

namespace parallelrun::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Two processes. Process 0 was given sequences 3 (id 2) and 4 (id 3) after a short one, and is at
// the first; process 1 is idle.
struct OneWaits : CoreHarness {
  OneWaits() : CoreHarness(2) {}
  void Start() {
    BeginWith(4);
    Advance(milliseconds(5));
    ASSERT_TRUE(Succeed(0, 1));
    ASSERT_TRUE(Succeed(1, 2));
    ASSERT_THAT(given[0], ElementsAre(1, 3, 4));
    ASSERT_THAT(given[1], ElementsAre(2));
    ASSERT_TRUE(NextReport());
    Answer(SettleAll());
    since = now();
    Work(0, 3, Phase::kRun, since);
  }
  void Know() { core.OnStatus(0, {3, Phase::kRun, since, taken_back[0]}); }
  Instant since{};
};

TEST(AgentCoreWaiting, WhatWaitsBehindALongOneGoesToAnIdleProcess) {
  OneWaits h;
  h.Start();
  h.Advance(milliseconds(900));
  EXPECT_THAT(h.taken_back, IsEmpty());
  h.Advance(milliseconds(200));
  EXPECT_EQ(h.taken_back[0], 4U);
  h.Advance(seconds(1));
  EXPECT_THAT(h.given[1], SizeIs(1)) << "the process may have begun with it";
  h.Know();
  h.Advance(milliseconds(100));
  EXPECT_THAT(h.given[1], ElementsAre(2, 5));
  EXPECT_TRUE(h.Succeed(1, 5));
  ASSERT_TRUE(h.NextReport());
  ASSERT_THAT(h.request.finished, SizeIs(1));
  EXPECT_EQ(h.request.finished[0].id, 3U);
  h.Answer(h.SettleAll());
  // The long one ends well, and no try was used.
  EXPECT_TRUE(h.Succeed(0, 3));
  EXPECT_TRUE(h.core.OnPassedOver(0, 4, h.now()));
  ASSERT_TRUE(h.NextReport());
  ASSERT_THAT(h.request.finished, SizeIs(1));
  EXPECT_EQ(h.request.finished[0].id, 2U);
  EXPECT_EQ(h.request.finished[0].kind, job::Finished::Kind::kSucceeded);
  h.Answer(h.SettleAll());
  EXPECT_EQ(h.core.held(), 0U);
  EXPECT_THAT(h.killed, IsEmpty());
}

TEST(AgentCoreWaiting, WhatTheProcessHadBegunMeanwhileStaysWithIt) {
  OneWaits h;
  h.Start();
  h.Advance(milliseconds(1100));
  ASSERT_EQ(h.taken_back[0], 4U);
  EXPECT_TRUE(h.Succeed(0, 3));
  h.core.OnStatus(0, {4, Phase::kRun, h.now(), 4});
  h.Advance(milliseconds(100));
  EXPECT_THAT(h.given[1], SizeIs(1));
  EXPECT_TRUE(h.Succeed(0, 4));
}

TEST(AgentCoreWaiting, WhatTheProcessPassedOverIsGivenAgain) {
  OneWaits h;
  h.Start();
  h.Advance(milliseconds(1100));
  ASSERT_EQ(h.taken_back[0], 4U);
  EXPECT_TRUE(h.Succeed(0, 3));
  h.Work(0, 4, Phase::kLoading, h.now());
  EXPECT_TRUE(h.core.OnPassedOver(0, 4, h.now()));
  h.Step();
  EXPECT_EQ(h.given[0].size() + h.given[1].size(), 5U);
  EXPECT_EQ(h.core.held(), 2U);  // the long one's result is not settled
}

TEST(AgentCoreWaiting, NothingElseMayBePassedOver) {
  OneWaits h;
  h.Start();
  EXPECT_FALSE(h.core.OnPassedOver(0, 4, h.now()));
  EXPECT_FALSE(h.core.OnPassedOver(7, 4, h.now()));
  h.Advance(milliseconds(1100));
  ASSERT_EQ(h.taken_back[0], 4U);
  EXPECT_FALSE(h.core.OnPassedOver(0, 5, h.now()));
  EXPECT_FALSE(h.core.OnPassedOver(0, 4, h.now())) << "3 is not answered";
}

TEST(AgentCoreWaiting, AProcessThatIsLateGetsNothing) {
  OneWaits h;
  h.Start();
  h.Advance(milliseconds(1100));
  ASSERT_EQ(h.Next(), CallKind::kPark);
  job::ExchangeReply reply = h.Reply();
  for (job::BatchId id = 10; id < 20; ++id) reply.leased.push_back(CoreHarness::Lease(id));
  h.Answer(reply, CallKind::kPark);
  EXPECT_THAT(h.given[0], SizeIs(3));
  EXPECT_GT(h.given[1].size(), 1U);
}

TEST(AgentCoreWaiting, ADeathFailsTheLongOneOnly) {
  OneWaits h;
  h.Start();
  h.Advance(milliseconds(1100));
  h.Know();
  h.Advance(milliseconds(100));
  ASSERT_THAT(h.given[1], ElementsAre(2, 5));
  h.Advance(seconds(60));
  ASSERT_THAT(h.killed, ElementsAre(0));
  h.Exit(0, "was killed by signal 9 (SIGKILL)");
  EXPECT_TRUE(h.Succeed(1, 5));
  ASSERT_TRUE(h.NextReport());
  ASSERT_THAT(h.request.finished, SizeIs(2));
  EXPECT_EQ(h.request.finished[0].id, 2U);
  EXPECT_EQ(h.request.finished[0].cause, job::Cause::kRunTimeout);
  EXPECT_EQ(h.request.finished[1].id, 3U);
  EXPECT_EQ(h.request.finished[1].kind, job::Finished::Kind::kSucceeded);
}

TEST(AgentCoreWaiting, ANodeWhoseProcessesAreAllLateHandsEverythingBack) {
  CoreHarness h;
  h.BeginWith(4);
  h.Advance(milliseconds(5));
  ASSERT_TRUE(h.Succeed(0, 1));
  ASSERT_THAT(h.given[0], ElementsAre(1, 2, 3));
  ASSERT_TRUE(h.NextReport());
  h.Answer(h.SettleAll());
  const Instant since = h.now();
  h.Work(0, 2, Phase::kRun, since);
  h.Advance(milliseconds(1100));
  ASSERT_EQ(h.taken_back[0], 3U);
  h.core.OnStatus(0, {2, Phase::kRun, since, 3});
  h.Advance(milliseconds(1100));
  h.Advance(milliseconds(100));
  ASSERT_TRUE(h.NextReport());
  EXPECT_THAT(h.request.finished, SizeIs(2));
  for (const job::Finished& f : h.request.finished)
    EXPECT_EQ(f.kind, job::Finished::Kind::kReturned);
  EXPECT_EQ(h.request.want, 0U);
  h.Answer(h.SettleAll());
  EXPECT_EQ(h.core.held(), 1U);
  // When the long one ends there is room again.
  EXPECT_TRUE(h.Succeed(0, 2));
  h.Advance(milliseconds(100));
  ASSERT_TRUE(h.NextReport());
  EXPECT_GT(h.request.want, 0U);
}

}  // namespace
}  // namespace parallelrun::agent
