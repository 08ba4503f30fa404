// Leases by the agent's own clock, and answers that got lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/core/agent_core.h"
#include "tests/unit/agent/core/harness.h"

namespace parallelrun::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// One process in run() of sequence 1 (id 0); the lease lasts 10 s.
struct AtWork : CoreHarness {
  explicit AtWork(bool speculation) { registration.speculation = speculation; }
  void Start() {
    BeginWith(1);
    Work(0, 1, Phase::kRun, now());
  }
  // Seconds without an answer, as the edge sees them.
  void Silence(int count) {
    for (int i = 0; i < count; ++i) {
      for (CallKind call = Next(); call != CallKind::kNone; call = Next()) {
        core.OnCallFailed(call, CallFailure::kUnreachable, now());
      }
      Advance(seconds(1));
    }
  }
  // The next list of held leases is answered.
  void Renew() {
    const CallKind call = Next();
    ASSERT_TRUE(call == CallKind::kPark || call == CallKind::kReport);
    ASSERT_THAT(request.held, SizeIs(1));
    Answer(Reply(), call);
  }
};

TEST(AgentCoreLease, WithoutSpeculationRunEndsBeforeItsLease) {
  AtWork h(false);
  h.Start();
  h.Silence(8);
  EXPECT_THAT(h.killed, IsEmpty());
  h.Silence(1);
  EXPECT_THAT(h.killed, ElementsAre(0));
  h.Exit(0, "was killed by signal 9 (SIGKILL)");
  ASSERT_THAT(h.started, SizeIs(2));
  EXPECT_TRUE(h.core.OnReady(1, false, h.now()));
  h.Silence(3);
  EXPECT_THAT(h.given[1], IsEmpty()) << "somebody else may have it";
  EXPECT_EQ(h.core.held(), 1U);
  // Nobody else had it: it is renewed, and no try was used.
  h.Renew();
  EXPECT_THAT(h.request.finished, IsEmpty());
  EXPECT_THAT(h.given[1], SizeIs(1));
}

TEST(AgentCoreLease, EachAnswerThatRenewsMovesTheEnd) {
  AtWork h(false);
  h.Start();
  h.Silence(8);
  h.Renew();
  h.Silence(8);
  EXPECT_THAT(h.killed, IsEmpty());
  h.Silence(1);
  EXPECT_THAT(h.killed, ElementsAre(0));
}

TEST(AgentCoreLease, TheTimeCountsFromTheRequestOn) {
  AtWork h(false);
  h.Start();
  h.Advance(seconds(1));
  ASSERT_EQ(h.Next(), CallKind::kPark);
  h.Advance(milliseconds(7900));
  h.Answer(h.Reply(), CallKind::kPark);  // it says what was so 7.9 s ago
  h.Silence(1);
  EXPECT_THAT(h.killed, IsEmpty());
  h.Silence(1);
  EXPECT_THAT(h.killed, ElementsAre(0));
}

TEST(AgentCoreLease, WithSpeculationItGoesOn) {
  AtWork h(true);
  h.Start();
  h.Silence(50);
  EXPECT_THAT(h.killed, IsEmpty());
  EXPECT_TRUE(h.Succeed(0, 1));
}

// A later epoch may have leased it to somebody that the new one has not heard of.
TEST(AgentCoreLease, WhatWasNotFinishedInTimeIsNotOffered) {
  for (const bool late : {false, true}) {
    AtWork h(false);
    h.Start();
    h.Silence(late ? 9 : 6);
    while (h.Next() == CallKind::kPark) {
    }
    h.core.OnCallFailed(CallKind::kPark, CallFailure::kStale, h.now());
    h.core.OnCallFailed(CallKind::kReport, CallFailure::kStale, h.now());
    h.Advance(seconds(1));
    ASSERT_EQ(h.Next(), CallKind::kRegister);
    h.registration.incarnation = {2, 1};
    h.core.OnRegistered(h.registration, h.now());
    h.Step();
    EXPECT_EQ(h.killed.size(), late ? 1U : 0U);
    if (late) {
      EXPECT_EQ(h.Next(), CallKind::kNone) << "before its process is gone, nothing is said";
      h.Exit(0, "was killed by signal 9 (SIGKILL)");
    }
    EXPECT_EQ(h.core.held(), late ? 0U : 1U);
    EXPECT_EQ(h.NextReport(), !late);
    EXPECT_EQ(h.request.offered.size(), late ? 0U : 1U);
  }
}

// An epoch that has heard of every node does not wait for leases that are still on their way.
TEST(AgentCoreLease, WhatComesLateFromAnEarlierEpochIsBegunOnceItIsAdopted) {
  for (const bool speculation : {false, true}) {
    CoreHarness h;
    h.registration.speculation = speculation;
    h.Begin();
    h.Answer(h.Reply());
    h.Advance(seconds(1));
    ASSERT_EQ(h.Next(), CallKind::kPark);
    job::ExchangeReply late = h.Reply();
    late.leased.push_back(CoreHarness::Lease(4));
    h.registration.incarnation = {2, 1};
    h.core.OnRegistered(h.registration, h.now());
    h.Answer(late, CallKind::kPark);
    EXPECT_EQ(h.given[0].size(), speculation ? 1U : 0U);
    h.Advance(seconds(1));
    ASSERT_TRUE(h.NextReport());
    ASSERT_THAT(h.request.offered, SizeIs(1));
    job::ExchangeReply reply = h.Reply();
    reply.adopted.push_back({4, {1, 104}, {2, 1}});
    h.Answer(reply);
    EXPECT_THAT(h.given[0], SizeIs(1));
  }
}

// Its coordinator heard nothing of it for a lease's time, and nobody else has it.
TEST(AgentCoreLease, WhatIsHeldAndHadExpiredGoesOnUnderItsNewFence) {
  for (const bool finished : {false, true}) {
    CoreHarness h;
    h.BeginWith(1);
    h.Work(0, 1, Phase::kRun, h.now());
    h.Advance(seconds(1));
    if (finished) {
      ASSERT_TRUE(h.Succeed(0, 1));
    }
    ASSERT_EQ(h.Next(), finished ? CallKind::kReport : CallKind::kPark);
    ASSERT_THAT(h.request.held, SizeIs(1));
    job::ExchangeReply reply = h.Reply();
    reply.adopted.push_back({0, {1, 100}, {1, 500}});
    h.Answer(reply, finished ? CallKind::kReport : CallKind::kPark);
    EXPECT_THAT(h.killed, IsEmpty());
    h.Advance(seconds(1));
    if (!finished) {
      ASSERT_TRUE(h.Succeed(0, 1));
    }
    ASSERT_TRUE(h.NextReport());
    ASSERT_THAT(h.request.finished, SizeIs(1));
    EXPECT_EQ(h.request.finished[0].fence, (job::Fence{1, 500}));
    h.Answer(h.SettleAll());
    EXPECT_EQ(h.core.held(), 0U);
  }
}

// The coordinator has no part of its rows under the new fence: it would refuse the result.
TEST(AgentCoreLease, UnderANewFenceRowsAreSentFromTheirBeginning) {
  for (const bool under_way : {false, true}) {
    CoreHarness h;
    h.BeginWith(1);
    EXPECT_TRUE(h.core.OnRows(0, 1, std::string(job::kMaxRowsBytes, 'x')));
    h.Advance(seconds(1));
    ASSERT_EQ(h.Next(), CallKind::kPark);
    EXPECT_TRUE(h.Succeed(0, 1, std::string(999, 'y') + '\n'));
    ASSERT_EQ(h.Next(), CallKind::kReport);
    ASSERT_THAT(h.request.parts, SizeIs(1));
    job::ExchangeReply adopts = h.Reply();
    adopts.adopted.push_back({0, {1, 100}, {1, 500}});
    if (under_way) {
      h.Answer(adopts, CallKind::kPark);
      h.Answer(h.Reply());
    } else {
      h.Answer(h.Reply());
      h.Answer(adopts, CallKind::kPark);
    }
    h.Advance(seconds(1));
    ASSERT_TRUE(h.NextReport());
    ASSERT_THAT(h.request.parts, SizeIs(1));
    EXPECT_EQ(h.request.parts[0].fence, (job::Fence{1, 500}));
    EXPECT_EQ(h.request.parts[0].offset, 0U);
  }
}

TEST(AgentCoreLease, WhatWasHandedBackIsNotOffered) {
  CoreHarness h;
  h.BeginWith(3);
  h.Work(0, 1, Phase::kRun, h.now());
  h.Advance(seconds(3));  // 2 is one too many behind a long one
  ASSERT_TRUE(h.NextReport());
  ASSERT_THAT(h.request.finished, SizeIs(1));
  ASSERT_EQ(h.request.finished[0].kind, job::Finished::Kind::kReturned);
  h.core.OnCallFailed(CallKind::kReport, CallFailure::kStale, h.now());
  h.Advance(seconds(1));
  ASSERT_EQ(h.Next(), CallKind::kRegister);
  h.registration.incarnation = {2, 1};
  h.core.OnRegistered(h.registration, h.now());
  ASSERT_TRUE(h.NextReport());
  EXPECT_THAT(h.request.offered, SizeIs(2));
  EXPECT_EQ(h.core.held(), 2U);
}

TEST(AgentCoreLease, AnIdleNodeAsksOftenEnoughToKeepWhatItIsGranted) {
  CoreHarness h;
  h.registration.speculation = false;
  h.Begin();
  h.Answer(h.Reply());
  h.Advance(milliseconds(100));
  ASSERT_EQ(h.Next(), CallKind::kPark);
  EXPECT_EQ(h.request.park_ms, 5000U);
}

TEST(AgentCoreLease, AnAnswerThatWaitsForTheDiskHoldsUpNoRenewal) {
  CoreHarness h(2);
  h.registration.speculation = false;
  h.BeginWith(2);
  h.Work(0, 1, Phase::kRun, h.now());
  EXPECT_TRUE(h.Succeed(1, 2));
  h.Advance(milliseconds(5));
  ASSERT_EQ(h.Next(), CallKind::kReport);  // and is not answered
  ASSERT_THAT(h.request.finished, SizeIs(1));
  for (int i = 0; i < 30; ++i) {
    h.Advance(seconds(1));
    while (h.Next() == CallKind::kPark) {
      EXPECT_THAT(h.request.held, SizeIs(2));
      h.Answer(h.Reply(), CallKind::kPark);
    }
  }
  EXPECT_THAT(h.killed, IsEmpty());
}

TEST(AgentCoreLease, AnAnswerThatGotLostIsToldUntilThatIsAnswered) {
  CoreHarness h;
  h.BeginWith(1);
  ASSERT_FALSE(h.request.unheard);
  ASSERT_EQ(h.request.number, 1U);
  h.Advance(seconds(1));
  ASSERT_EQ(h.Next(), CallKind::kPark);
  EXPECT_EQ(h.request.number, 2U);
  EXPECT_EQ(h.request.open, 0U);
  EXPECT_FALSE(h.request.unheard);
  EXPECT_TRUE(h.Succeed(0, 1));
  ASSERT_EQ(h.Next(), CallKind::kReport);
  EXPECT_EQ(h.request.number, 3U);
  EXPECT_EQ(h.request.open, 2U);
  h.core.OnCallFailed(CallKind::kReport, CallFailure::kUnreachable, h.now());
  h.Advance(seconds(1));
  ASSERT_EQ(h.Next(), CallKind::kReport);
  EXPECT_TRUE(h.request.unheard);
  EXPECT_EQ(h.request.open, 2U);
  EXPECT_THAT(h.request.held, SizeIs(1));
  // The other one gets lost too, after that was sent: its answer does not settle it.
  h.core.OnCallFailed(CallKind::kPark, CallFailure::kUnreachable, h.now());
  h.Answer(h.Reply());
  h.Advance(seconds(1));
  ASSERT_EQ(h.Next(), CallKind::kReport);
  EXPECT_TRUE(h.request.unheard);
  EXPECT_EQ(h.request.open, 0U);
  h.Answer(h.SettleAll());
  h.Advance(seconds(2));
  ASSERT_EQ(h.Next(), CallKind::kPark);
  EXPECT_FALSE(h.request.unheard);
}

}  // namespace
}  // namespace parallelrun::agent
