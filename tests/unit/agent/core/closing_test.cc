#include "agent/core/closing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/agent/core/harness.h"

namespace parallelrun::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Kind = ProcessEvent::Kind;

constexpr Instant kBegun{seconds(1000)};
constexpr Duration kTimeout = seconds(300);

TEST(Closing, BeginsOnceAndIsForgottenForANewCoordinator) {
  Closing closing;
  EXPECT_TRUE(closing.Begin(kBegun));
  EXPECT_FALSE(closing.Begin(kBegun + seconds(5)));
  EXPECT_EQ(closing.Deadline(kTimeout), kBegun + kTimeout);
  closing.Forget();
  EXPECT_FALSE(closing.begun());
}

TEST(Closing, OnlyWhatHasAShutdownIsTold) {
  Closing closing;
  EXPECT_FALSE(closing.Exited(1, "exited with status 0", std::nullopt, kTimeout));
  closing.Owes(2);
  closing.Owes(10);
  EXPECT_EQ(closing.OwingText(), "2 10");
  closing.Stopped(2, "", "log");
  EXPECT_EQ(closing.Exited(2, "exited with status 0", std::nullopt, kTimeout)->kind, Kind::kClosed);
  EXPECT_EQ(closing.OwingText(), "10");
}

TEST(Closing, WhatRaisedIsToldWithItsLog) {
  Closing closing;
  closing.Owes(1);
  closing.Stopped(1, "ValueError: late (s.py:4)", "user/error/0/process001.txt");
  closing.Stopped(1, "", "");  // the first word counts
  const auto end = closing.Exited(1, "was killed by signal 9", seconds(31), kTimeout);
  EXPECT_EQ(end->kind, Kind::kCloseFailed);
  EXPECT_EQ(end->message, "ValueError: late (s.py:4)");
  EXPECT_EQ(end->log, "user/error/0/process001.txt");
}

TEST(Closing, CutOffSaysWhatWouldHelp) {
  Closing closing;
  closing.Owes(1);
  closing.Owes(2);
  const auto slow = closing.Exited(1, "was killed by signal 9", kTimeout, kTimeout);
  EXPECT_EQ(slow->kind, Kind::kCutOff);
  EXPECT_THAT(slow->message, HasSubstr("raise spec.shutdownTimeoutSeconds"));
  const auto drained = closing.Exited(2, "was killed by signal 9", seconds(40), kTimeout);
  EXPECT_THAT(drained->message, HasSubstr("a drain, a preemption, or the end of its pod"));
}

TEST(Closing, WhoDiesBeforeTakesWhatItGatheredAlong) {
  Closing closing;
  closing.Owes(1);
  const auto end = closing.Exited(1, "was killed by signal 11", std::nullopt, kTimeout);
  EXPECT_EQ(end->kind, Kind::kCloseLost);
  EXPECT_EQ(end->message, "the process was killed by signal 11 before its shutdown() had ended");
}

ExchangeReply Close(const CoreHarness& h) {
  ExchangeReply reply = h.Reply();
  reply.directive = Directive::kClose;
  return reply;
}

std::vector<Kind> Kinds(const ExchangeRequest& request) {
  std::vector<Kind> kinds;
  for (const ProcessEvent& event : request.events) kinds.push_back(event.kind);
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
  ExchangeReply finish = h.Reply();
  finish.directive = Directive::kFinish;
  h.Answer(finish);
  EXPECT_EQ(h.core.end(), AgentEnd::kFinished);
}

TEST(AgentCoreClosing, NothingIsBegunAnyMoreAndWhoStartsIsKilled) {
  CoreHarness h(2);
  h.Begin();
  h.Exit(1);
  ExchangeReply reply = Close(h);
  reply.leased.push_back(CoreHarness::Lease(5));  // granted a moment before
  h.Answer(reply);
  EXPECT_THAT(h.started, ElementsAre(0, 1, 2)) << "the last one before it was asked";
  EXPECT_THAT(h.killed, ElementsAre(2));
  EXPECT_THAT(h.given, IsEmpty());
  ASSERT_TRUE(h.NextReport());
  ASSERT_EQ(h.request.finished.size(), 1U);
  EXPECT_EQ(h.request.finished[0].kind, Finished::Kind::kReturned);
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
    ExchangeReply reply = h.Reply();
    for (const BatchId id : {0, 1}) reply.leased.push_back(CoreHarness::Lease(id));
    h.Answer(reply);
    ASSERT_TRUE(h.Succeed(0, 1));
    h.Work(0, 2, Phase::kRun, h.now());
    ASSERT_TRUE(h.NextReport());
    ExchangeReply refuse = h.SettleAll();
    refuse.refused.push_back({1, {1, 101}});
    h.Answer(refuse);
    h.Advance(seconds(5));
    EXPECT_EQ(h.killed.empty(), shutdown);
  }
}

}  // namespace
}  // namespace parallelrun::agent
