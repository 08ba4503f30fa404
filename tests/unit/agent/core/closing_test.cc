// All mini-batches are settled: the processes run their shutdown(), and the agent stays.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/agent/core/harness.h"

namespace parallelrun::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Kind = job::ProcessEvent::Kind;

job::ExchangeReply Close(const CoreHarness& h) {
  job::ExchangeReply reply = h.Reply();
  reply.directive = job::Directive::kClose;
  return reply;
}

std::vector<Kind> Kinds(const job::ExchangeRequest& request) {
  std::vector<Kind> kinds;
  for (const job::ProcessEvent& event : request.events) kinds.push_back(event.kind);
  return kinds;
}

TEST(AgentCoreClosing, AHungShutdownHangsNobody) {
  CoreHarness h;
  h.registration.shutdown_timeout = seconds(20);
  ASSERT_EQ(h.Next(), CallKind::kRegister);
  h.core.OnRegistered(h.registration, h.now());
  h.Step();
  ASSERT_TRUE(h.core.OnReady(0, true, h.now()));
  ASSERT_TRUE(h.NextReport());
  EXPECT_THAT(Kinds(h.request), ElementsAre(Kind::kReady, Kind::kOwes));
  h.Answer(Close(h));
  EXPECT_THAT(h.stopped, ElementsAre(0));
  h.Advance(seconds(19));
  EXPECT_THAT(h.killed, IsEmpty());
  h.Advance(seconds(1));
  EXPECT_THAT(h.killed, ElementsAre(0));
  h.Exit(0, "was killed by signal 9");
  ASSERT_TRUE(h.NextReport());
  EXPECT_THAT(Kinds(h.request), ElementsAre(Kind::kOwing, Kind::kCutOff));
  EXPECT_EQ(h.core.end(), AgentEnd::kNone) << "it stays until the verdict";
  job::ExchangeReply finish = h.Reply();
  finish.directive = job::Directive::kFinish;
  h.Answer(finish);
  EXPECT_EQ(h.core.end(), AgentEnd::kFinished);
}

TEST(AgentCoreClosing, WhatIsLeftForTheEndLaterIsToldOnceInFrontOfTheResult) {
  CoreHarness h;
  h.Begin();
  job::ExchangeReply reply = h.Reply();
  reply.leased.push_back(CoreHarness::Lease(0));
  h.Answer(reply);
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(h.core.OnOwes(0));
  ASSERT_TRUE(h.Succeed(0, 1));
  ASSERT_TRUE(h.NextReport());
  EXPECT_THAT(Kinds(h.request), ElementsAre(Kind::kOwes));
  EXPECT_EQ(h.request.finished.size(), 1U);
  h.Exit(0, "was killed by signal 9");
  h.Answer(h.SettleAll());
  ASSERT_TRUE(h.NextReport());
  EXPECT_THAT(Kinds(h.request), ElementsAre(Kind::kExited, Kind::kCloseLost));
}

TEST(AgentCoreClosing, NothingIsBegunAnyMoreAndWhoStartsIsKilled) {
  CoreHarness h(2);
  h.Begin();
  h.Exit(1);
  job::ExchangeReply reply = Close(h);
  reply.leased.push_back(CoreHarness::Lease(5));  // granted a moment before
  h.Answer(reply);
  EXPECT_THAT(h.started, ElementsAre(0, 1, 2)) << "the last one before it was asked";
  EXPECT_THAT(h.killed, ElementsAre(2));
  EXPECT_THAT(h.given, IsEmpty());
  ASSERT_TRUE(h.NextReport());
  ASSERT_EQ(h.request.finished.size(), 1U);
  EXPECT_EQ(h.request.finished[0].kind, job::Finished::Kind::kReturned);
  h.Exit(2);
  h.Exit(0, "exited with status 0");
  EXPECT_THAT(h.started, ElementsAre(0, 1, 2));
}

TEST(AgentCoreClosing, ARefusedRunIsNotEndedWhereShutdownWouldBeLostWithIt) {
  for (const bool shutdown : {false, true}) {
    CoreHarness h;
    ASSERT_EQ(h.Next(), CallKind::kRegister);
    h.core.OnRegistered(h.registration, h.now());
    h.Step();
    ASSERT_TRUE(h.core.OnReady(0, shutdown, h.now()));
    ASSERT_TRUE(h.NextReport());
    job::ExchangeReply reply = h.Reply();
    for (const job::BatchId id : {0, 1}) reply.leased.push_back(CoreHarness::Lease(id));
    h.Answer(reply);
    ASSERT_TRUE(h.Succeed(0, 1));
    h.Work(0, 2, Phase::kRun, h.now());
    ASSERT_TRUE(h.NextReport());
    job::ExchangeReply refuse = h.SettleAll();
    refuse.refused.push_back({1, {1, 101}});
    h.Answer(refuse);
    h.Advance(seconds(5));
    EXPECT_EQ(h.killed.empty(), shutdown);
  }
}

}  // namespace
}  // namespace parallelrun::agent
