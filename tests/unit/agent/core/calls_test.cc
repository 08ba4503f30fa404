#include "agent/core/calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace parallelrun::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

// Registered at second 100, with the first report answered.
struct CallsHarness {
  CallsHarness() : calls(now) {
    terms.incarnation = {1, 1};
    terms.lease = seconds(10);
    calls.Registered(now);
  }
  CallKind Next() { return calls.Next(now, say); }
  Flight& Begin(CallKind call) { return calls.Begin(call, terms, say.holds, now, request); }
  void Answer(CallKind call, bool hungry = false) {
    calls.Answered(call, true, now);
    calls.AfterReply(false, hungry, now);
  }
  void Fail(CallKind call, CallFailure failure = CallFailure::kUnreachable) {
    calls.Failed(call, failure, true, failure == CallFailure::kStale, now);
  }

  Instant now{seconds(100)};
  Calls calls;
  Registration terms;
  ToSay say;
  job::ExchangeRequest request;
};

TEST(Calls, ARegistrationComesFirstAndAlone) {
  CallsHarness h;
  h.say = {.registration = true, .events = true};
  EXPECT_EQ(h.Next(), CallKind::kRegister);
  EXPECT_EQ(h.Next(), CallKind::kNone) << "it is under way";
  h.calls.Registered(h.now);
  h.say.registration = false;
  EXPECT_EQ(h.Next(), CallKind::kReport);
}

TEST(Calls, NothingToReportParks) {
  CallsHarness h;
  ASSERT_EQ(h.Next(), CallKind::kPark);
  h.Begin(CallKind::kPark);
  EXPECT_EQ(h.request.park_ms, 20'000U);
  EXPECT_EQ(h.Next(), CallKind::kNone);
  EXPECT_EQ(h.calls.wake(), kNever);
  h.calls.ReportBy(h.now + milliseconds(3));
  EXPECT_EQ(h.Next(), CallKind::kNone);
  EXPECT_EQ(h.calls.wake(), h.now + milliseconds(3));
  h.now += milliseconds(3);
  ASSERT_EQ(h.Next(), CallKind::kReport);
  h.Begin(CallKind::kReport);
  EXPECT_EQ(h.request.park_ms, 0U);
  EXPECT_EQ(h.request.open, 1U) << "the parked one";
  h.calls.Reported(false);
  h.Answer(CallKind::kReport);
  EXPECT_EQ(h.Next(), CallKind::kNone);
}

TEST(Calls, WhatIsLeftOfAReportFollowsAtOnce) {
  CallsHarness h;
  h.calls.ReportBy(h.now);
  ASSERT_EQ(h.Next(), CallKind::kReport);
  h.Begin(CallKind::kReport);
  h.calls.Reported(true);
  h.Answer(CallKind::kReport);
  EXPECT_EQ(h.Next(), CallKind::kReport);
}

TEST(Calls, AfterAReportAParkWaitsForCompanyUnlessWorkMayBeHad) {
  for (const bool hungry : {false, true}) {
    CallsHarness h;
    h.say.events = true;
    ASSERT_EQ(h.Next(), CallKind::kReport);
    h.Begin(CallKind::kReport);
    h.say.events = false;
    h.calls.Reported(false);
    h.Answer(CallKind::kReport, hungry);
    EXPECT_EQ(h.Next(), hungry ? CallKind::kPark : CallKind::kNone);
    h.now += milliseconds(20);
    EXPECT_EQ(h.Next(), CallKind::kPark);
  }
}

TEST(Calls, WhatIsHeldIsListedEachSecondAndNotOftener) {
  CallsHarness h;
  h.say.holds = true;
  ASSERT_EQ(h.Next(), CallKind::kReport) << "never renewed";
  EXPECT_TRUE(h.Begin(CallKind::kReport).lists);
  h.Answer(CallKind::kReport, true);
  ASSERT_EQ(h.Next(), CallKind::kPark);
  EXPECT_FALSE(h.Begin(CallKind::kPark).lists);
  EXPECT_EQ(h.request.park_ms, 1'000U);
  h.now += seconds(1);
  h.Answer(CallKind::kPark, true);
  ASSERT_EQ(h.Next(), CallKind::kPark);
  EXPECT_TRUE(h.Begin(CallKind::kPark).lists);
}

TEST(Calls, LeasesAreRenewedBesideAReportThatWaitsForADisk) {
  CallsHarness h;
  h.say.holds = true;
  ASSERT_EQ(h.Next(), CallKind::kReport);
  h.Begin(CallKind::kReport);
  EXPECT_EQ(h.Next(), CallKind::kNone);
  EXPECT_EQ(h.calls.wake(), h.now + seconds(2));
  h.now += seconds(2);
  ASSERT_EQ(h.Next(), CallKind::kPark);
  EXPECT_TRUE(h.Begin(CallKind::kPark).lists);
  EXPECT_EQ(h.request.open, 1U);
  h.Answer(CallKind::kPark);
  h.say.offers = true;
  h.now += seconds(2);
  EXPECT_EQ(h.Next(), CallKind::kNone) << "while it is unclear what it holds it lists nothing";
}

TEST(Calls, WithoutSpeculationAParkIsShorterThanALease) {
  CallsHarness h;
  h.terms.speculation = false;
  ASSERT_EQ(h.Next(), CallKind::kPark);
  h.Begin(CallKind::kPark);
  EXPECT_EQ(h.request.park_ms, 5'000U);
}

TEST(Calls, SilenceHoldsBackAllButARegistration) {
  CallsHarness h;
  h.say = {.events = true, .silent = true};
  EXPECT_EQ(h.Next(), CallKind::kNone);
  h.say.registration = true;
  EXPECT_EQ(h.Next(), CallKind::kRegister);
}

TEST(Calls, AnAnswerThatGotLostIsToldUntilThatIsAnswered) {
  CallsHarness h;
  h.say.holds = true;
  h.Next();
  h.Begin(CallKind::kReport);
  EXPECT_FALSE(h.request.unheard);
  h.Fail(CallKind::kReport);
  h.now += seconds(1);
  ASSERT_EQ(h.Next(), CallKind::kReport);
  h.Begin(CallKind::kReport);
  EXPECT_TRUE(h.request.unheard);
  h.Answer(CallKind::kReport, true);
  h.now += seconds(1);
  ASSERT_EQ(h.Next(), CallKind::kPark);
  h.Begin(CallKind::kPark);
  EXPECT_FALSE(h.request.unheard);
}

TEST(Calls, WhoIsAwayIsAskedLessAndLessOftenUpToEachSecond) {
  CallsHarness h;
  EXPECT_EQ(h.calls.Away(h.now), Duration(0));
  Duration last{0};
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(h.Next(), CallKind::kPark);
    h.Begin(CallKind::kPark);
    h.Fail(CallKind::kPark);
    ASSERT_EQ(h.Next(), CallKind::kNone);
    const Duration wait = h.calls.wake() - h.now;
    EXPECT_GE(wait, last);
    EXPECT_LE(wait, seconds(1));
    last = wait;
    h.now = h.calls.wake();
  }
  EXPECT_EQ(last, seconds(1));
  EXPECT_EQ(h.calls.Away(h.now), h.now - Instant(seconds(100)));
  // It answers that it is busy: it is not away.
  h.Next();
  h.Begin(CallKind::kPark);
  h.Fail(CallKind::kPark, CallFailure::kBusy);
  EXPECT_EQ(h.calls.Away(h.now), Duration(0));
}

TEST(Calls, TheEndOfAnExchangeGivesBackWhatItCarried) {
  CallsHarness h;
  h.say.events = true;
  h.Next();
  Flight& flight = h.Begin(CallKind::kReport);
  flight.want = 3;
  flight.finished = {1, 2};
  flight.parts = {{4, 100}, {5, 200}};
  EXPECT_EQ(h.calls.wanted(), 3U);
  h.calls.ForgetParts(4);
  const Flight ended =
      h.calls.Failed(CallKind::kReport, CallFailure::kUnreachable, true, false, h.now);
  EXPECT_THAT(ended.finished, ElementsAre(1, 2));
  EXPECT_THAT(ended.parts, ElementsAre(Pair(5, 200)));
  EXPECT_EQ(h.calls.wanted(), 0U);
  EXPECT_THAT(h.calls.Of(CallKind::kReport).finished, IsEmpty());
}

}  // namespace
}  // namespace parallelrun::agent
