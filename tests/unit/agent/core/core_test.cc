#include "agent/core/agent_core.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/agent/core/harness.h"

namespace parallelrun::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(AgentCore, RegistersStartsProcessesAndWantsTwoForEach) {
  CoreHarness h(3);
  h.Step();
  EXPECT_THAT(h.started, IsEmpty());
  h.registration.first_process = 40;
  h.Begin();
  EXPECT_THAT(h.started, ElementsAre(40, 41, 42));
  EXPECT_EQ(h.request.want, 6U);
  EXPECT_THAT(h.request.events, SizeIs(3));
  EXPECT_EQ(h.request.settings_digest, 77U);
}

TEST(AgentCore, WantsNothingBeforeAProcessIsReady) {
  CoreHarness h;
  ASSERT_EQ(h.Next(), CallKind::kRegister);
  h.core.OnRegistered(h.registration, h.now());
  h.Step();
  ASSERT_EQ(h.Next(), CallKind::kPark);
  EXPECT_EQ(h.request.want, 0U);
  EXPECT_EQ(h.request.park_ms, 20'000U);
}

TEST(AgentCore, GivesToTheLeastLoadedAndKeepsUnknownWorkBack) {
  CoreHarness h(2);
  h.BeginWith(4);
  EXPECT_THAT(h.given[0], SizeIs(1));
  EXPECT_THAT(h.given[1], SizeIs(1));
  h.Advance(milliseconds(10));
  EXPECT_TRUE(h.Succeed(0, h.given[0][0]));
  // 10 ms each: now one runs and one waits in the socket.
  EXPECT_THAT(h.given[0].size() + h.given[1].size(), 4U);
}

TEST(AgentCore, SlowMiniBatchesNeverWaitBehindAnother) {
  CoreHarness h(2);
  h.BeginWith(4);
  h.Advance(seconds(1));
  EXPECT_TRUE(h.Succeed(0, h.given[0][0]));
  EXPECT_THAT(h.given[0], SizeIs(2));
  EXPECT_THAT(h.given[1], SizeIs(1));
}

TEST(AgentCore, AShortRunIsGivenManyAtOnceAndWantIsCapped) {
  CoreHarness h;
  h.BeginWith(2);
  h.Advance(microseconds(10));
  EXPECT_TRUE(h.Succeed(0, 1));
  h.Advance(milliseconds(3));
  ASSERT_TRUE(h.NextReport());
  EXPECT_EQ(h.request.want, 2047U);
  job::ExchangeReply reply = h.SettleAll();
  for (job::BatchId id = 2; id < 2049; ++id) reply.leased.push_back(CoreHarness::Lease(id));
  h.Answer(reply);
  EXPECT_LE(h.given[0].size(), 257U);
  EXPECT_GE(h.given[0].size(), 3U);
}

TEST(AgentCore, ReportsUntilSettled) {
  CoreHarness h;
  h.BeginWith(1);
  EXPECT_TRUE(h.Succeed(0, 1));
  ASSERT_TRUE(h.NextReport());
  ASSERT_THAT(h.request.finished, SizeIs(1));
  EXPECT_EQ(h.request.finished[0].rows, "row\n");
  h.Answer(h.Reply());
  EXPECT_FALSE(h.NextReport());  // not at once
  h.Advance(milliseconds(60));
  ASSERT_TRUE(h.NextReport());
  ASSERT_THAT(h.request.finished, SizeIs(1));
  h.Answer(h.SettleAll());
  h.Advance(milliseconds(60));
  EXPECT_FALSE(h.NextReport());
  EXPECT_EQ(h.core.held(), 0U);
}

TEST(AgentCore, RenewsEachSecondWithStarted) {
  CoreHarness h(1);
  h.BeginWith(2);
  ASSERT_EQ(h.Next(), CallKind::kNone);
  h.Work(0, 1, Phase::kRun, h.now());
  h.Advance(seconds(1));
  ASSERT_EQ(h.Next(), CallKind::kPark);
  EXPECT_EQ(h.request.park_ms, 1000U);
  ASSERT_THAT(h.request.held, SizeIs(2));
  int started = 0;
  for (const job::HeldLease& held : h.request.held) started += held.started ? 1 : 0;
  EXPECT_EQ(started, 1);
  // The parked answer does not come: the report side renews.
  h.Advance(seconds(2));
  ASSERT_EQ(h.Next(), CallKind::kReport);
  EXPECT_THAT(h.request.held, SizeIs(2));
}

TEST(AgentCore, SendsBigRowsInParts) {
  CoreHarness h;
  h.BeginWith(1);
  const std::string part(job::kMaxRowsBytes, 'x');
  EXPECT_TRUE(h.core.OnRows(0, 1, part));
  EXPECT_TRUE(h.core.OnRows(0, 1, part));
  EXPECT_TRUE(h.Succeed(0, 1, "tai\n"));
  uint64_t received = 0;
  int exchanges = 0;
  for (;;) {
    ASSERT_TRUE(h.NextReport());
    ASSERT_LT(++exchanges, 10);
    size_t rows = 0;
    for (const job::RowsPart& p : h.request.parts) {
      EXPECT_EQ(p.offset, received);
      received += p.rows.size();
      rows += p.rows.size();
    }
    for (const job::Finished& f : h.request.finished) rows += f.rows.size();
    EXPECT_LE(rows, job::kMaxRowsBytes);
    if (!h.request.finished.empty()) break;
    h.Answer(h.Reply());
  }
  EXPECT_EQ(h.request.finished[0].rows_offset, received);
  EXPECT_EQ(received + h.request.finished[0].rows.size(), 2 * job::kMaxRowsBytes + 4);
  h.Answer(h.SettleAll());
  EXPECT_EQ(h.core.held(), 0U);
}

TEST(AgentCore, PartsStartAgainWithANewIncarnation) {
  CoreHarness h;
  h.BeginWith(1);
  EXPECT_TRUE(h.core.OnRows(0, 1, std::string(job::kMaxRowsBytes, 'x')));
  EXPECT_TRUE(h.Succeed(0, 1, std::string(999, 'y') + '\n'));
  ASSERT_TRUE(h.NextReport());
  ASSERT_THAT(h.request.parts, SizeIs(1));
  h.Answer(h.Reply());
  ASSERT_TRUE(h.NextReport());
  h.core.OnCallFailed(CallKind::kReport, CallFailure::kStale, h.now());
  h.Advance(milliseconds(50));
  ASSERT_EQ(h.Next(), CallKind::kRegister);
  h.registration.incarnation = {2, 1};
  h.core.OnRegistered(h.registration, h.now());
  ASSERT_TRUE(h.NextReport());
  EXPECT_THAT(h.request.parts, IsEmpty());
  EXPECT_THAT(h.request.finished, IsEmpty());
  ASSERT_THAT(h.request.offered, SizeIs(1));
  EXPECT_EQ(h.request.offered[0].digest, 0U);
  EXPECT_EQ(h.request.offered[0].fence.number, 100U);
  job::ExchangeReply reply = h.Reply();
  reply.adopted.push_back({0, {1, 100}, {2, 5}});
  h.Answer(reply);
  ASSERT_TRUE(h.NextReport());
  ASSERT_THAT(h.request.parts, SizeIs(1));
  EXPECT_EQ(h.request.parts[0].offset, 0U);
  EXPECT_EQ(h.request.parts[0].fence, (job::Fence{2, 5}));
}

TEST(AgentCore, ReRegistrationOffersAndKeepsWorking) {
  CoreHarness h;
  h.BeginWith(3);
  h.Advance(seconds(1));
  ASSERT_EQ(h.Next(), CallKind::kPark);
  h.core.OnCallFailed(CallKind::kPark, CallFailure::kStale, h.now());
  EXPECT_TRUE(h.Succeed(0, 1));
  EXPECT_THAT(h.given[0], SizeIs(2));
  h.Advance(milliseconds(50));
  ASSERT_EQ(h.Next(), CallKind::kRegister);
  h.registration.incarnation = {2, 1};
  h.registration.first_process = 10000;
  h.core.OnRegistered(h.registration, h.now());
  ASSERT_TRUE(h.NextReport());
  EXPECT_THAT(h.request.offered, SizeIs(3));
  EXPECT_THAT(h.request.held, IsEmpty());
  job::ExchangeReply reply = h.Reply();
  reply.adopted.push_back({0, {1, 100}, {2, 1}});
  reply.refused.push_back({2, {1, 102}});
  h.Answer(reply);
  // The one without an answer is offered again; the finished one is reported with its new fence.
  h.Advance(milliseconds(60));
  ASSERT_TRUE(h.NextReport());
  EXPECT_THAT(h.request.offered, SizeIs(1));
  ASSERT_THAT(h.request.finished, SizeIs(1));
  EXPECT_EQ(h.request.finished[0].fence, (job::Fence{2, 1}));
  // New processes take the new names, the old ones stay.
  h.Exit(0);
  EXPECT_THAT(h.started, ElementsAre(0, 10000));
}

TEST(AgentCore, NamesThatAreGrantedAgainAreNotUsedTwice) {
  CoreHarness h(2);
  h.Begin();
  h.core.OnCallFailed(CallKind::kReport, CallFailure::kStale, h.now());
  h.Advance(milliseconds(50));
  ASSERT_EQ(h.Next(), CallKind::kRegister);
  h.registration.incarnation = {2, 1};  // of an epoch that knows nothing of the first one's
  h.core.OnRegistered(h.registration, h.now());
  h.Step();
  h.Exit(1);
  EXPECT_THAT(h.started, ElementsAre(0, 1, 2));
}

TEST(AgentCore, OtherSettingsDropEverything) {
  CoreHarness h;
  h.BeginWith(3);
  ASSERT_FALSE(h.NextReport());
  h.Advance(seconds(3));
  ASSERT_TRUE(h.NextReport());
  h.core.OnCallFailed(CallKind::kReport, CallFailure::kStale, h.now());
  h.Advance(seconds(1));
  ASSERT_EQ(h.Next(), CallKind::kRegister);
  h.registration.settings_digest = 78;
  h.registration.incarnation = {2, 1};
  h.core.OnRegistered(h.registration, h.now());
  h.Step();
  EXPECT_THAT(h.killed, ElementsAre(0));
  h.Exit(0);
  EXPECT_EQ(h.core.held(), 0U);
  EXPECT_THAT(h.started, SizeIs(2));
}

TEST(AgentCore, LeasesOfAnAnswerToAnEarlierIncarnationAreOffered) {
  CoreHarness h;
  h.BeginWith(1);
  h.Advance(seconds(1));
  ASSERT_EQ(h.Next(), CallKind::kPark);
  h.Advance(seconds(3));
  ASSERT_EQ(h.Next(), CallKind::kReport);
  h.core.OnCallFailed(CallKind::kReport, CallFailure::kStale, h.now());
  job::ExchangeReply reply = h.Reply();
  reply.leased.push_back(CoreHarness::Lease(5));
  h.Answer(reply, CallKind::kPark);
  h.Advance(seconds(1));
  ASSERT_EQ(h.Next(), CallKind::kRegister);
  h.registration.incarnation = {1, 2};
  h.core.OnRegistered(h.registration, h.now());
  ASSERT_TRUE(h.NextReport());
  EXPECT_THAT(h.request.offered, SizeIs(2));
}

TEST(AgentCore, ALateAnswerToAnEarlierIncarnationOnlySettlesAndLeavesOffers) {
  CoreHarness h;
  h.BeginWith(2);
  h.Advance(seconds(1));
  ASSERT_EQ(h.Next(), CallKind::kPark);
  h.Advance(seconds(3));
  ASSERT_EQ(h.Next(), CallKind::kReport);
  h.core.OnCallFailed(CallKind::kReport, CallFailure::kStale, h.now());
  h.Advance(seconds(1));
  ASSERT_EQ(h.Next(), CallKind::kRegister);
  h.registration.incarnation = {1, 2};
  h.core.OnRegistered(h.registration, h.now());
  job::ExchangeReply reply = h.Reply();
  reply.leased.push_back(CoreHarness::Lease(5));
  reply.refused.push_back({1, {1, 101}});
  reply.directive = job::Directive::kDrain;
  h.Answer(reply, CallKind::kPark);
  EXPECT_TRUE(h.Succeed(0, 1));
  ASSERT_TRUE(h.NextReport());
  EXPECT_THAT(h.request.offered, SizeIs(3));
  EXPECT_THAT(h.request.finished, IsEmpty());  // not before it is adopted
  reply = h.Reply();
  reply.adopted.push_back({0, {1, 100}, {1, 500}});
  reply.adopted.push_back({1, {1, 101}, {1, 501}});
  reply.adopted.push_back({5, {1, 105}, {1, 502}});
  h.Answer(reply);
  ASSERT_TRUE(h.NextReport());
  ASSERT_THAT(h.request.finished, SizeIs(1));
  EXPECT_EQ(h.request.finished[0].fence.number, 500U);
}

TEST(AgentCore, RefusedQueuedIsForgottenAndRefusedRunningIsKilled) {
  CoreHarness h;
  h.BeginWith(2);
  h.Work(0, 1, Phase::kRun, h.now());
  h.Advance(seconds(1));
  ASSERT_EQ(h.Next(), CallKind::kPark);
  job::ExchangeReply reply = h.Reply();
  reply.refused = {{0, {1, 100}}, {1, {1, 101}}, {9, {1, 9}}};
  h.Answer(reply, CallKind::kPark);
  EXPECT_THAT(h.killed, IsEmpty());  // a short run() may still end by itself
  h.Advance(milliseconds(1200));
  EXPECT_THAT(h.killed, ElementsAre(0));
  h.Exit(0, "was killed by signal 9 (SIGKILL)");
  EXPECT_EQ(h.core.held(), 0U);
  while (h.Next() != CallKind::kNone) {
    EXPECT_THAT(h.request.finished, IsEmpty());
    EXPECT_THAT(h.request.events, IsEmpty());
  }
}

TEST(AgentCore, KeepsWorkingAndResultsWhileTheCoordinatorIsAway) {
  AgentOptions options;
  options.away_limit = seconds(30);
  CoreHarness h(1, options);
  h.BeginWith(3);
  EXPECT_TRUE(h.Succeed(0, 1));
  std::vector<Duration> waits;
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(h.NextReport());
    h.core.OnCallFailed(CallKind::kReport, CallFailure::kUnreachable, h.now());
    EXPECT_EQ(h.Next(), CallKind::kNone);
    waits.push_back(h.core.WakeAt() - h.now());
    h.Advance(seconds(1));
  }
  EXPECT_EQ(waits.front(), milliseconds(50));
  EXPECT_TRUE(h.Succeed(0, 2));
  EXPECT_TRUE(h.Succeed(0, 3));
  h.Advance(seconds(1));
  ASSERT_TRUE(h.NextReport());
  EXPECT_THAT(h.request.finished, SizeIs(3));
  h.core.OnCallFailed(CallKind::kReport, CallFailure::kUnreachable, h.now());
  h.Advance(seconds(25));
  EXPECT_EQ(h.Next(), CallKind::kNone);
  h.Step();
  EXPECT_THAT(h.stopped, ElementsAre(0));
  h.Exit(0);
  EXPECT_EQ(h.core.end(), AgentEnd::kLost);
  EXPECT_THAT(h.core.end_message(), HasSubstr("no coordinator answered"));
}

TEST(AgentCore, WaitsForAnEighthOfTheTimeThatTheCoordinatorIsAway) {
  CoreHarness h;
  h.BeginWith(1);
  h.Advance(seconds(1));
  CallKind call = h.Next();
  const Instant left = h.now();
  Duration longest{};
  while (h.now() - left < seconds(12)) {
    ASSERT_NE(call, CallKind::kNone);
    h.core.OnCallFailed(call, CallFailure::kUnreachable, h.now());
    const Instant failed = h.now();
    while ((call = h.Next()) == CallKind::kNone) h.Advance(milliseconds(1));
    longest = h.now() - failed;  // to the ms above
    ASSERT_LT(longest - milliseconds(1),
              std::max<Duration>(milliseconds(50), (failed - left + seconds(1)) / 8));
  }
  EXPECT_EQ(longest, seconds(1));
}

// Two coordinators are there, and the older one answers.
TEST(AgentCore, ARegistrationOfAnOlderEpochCountsForNothing) {
  CoreHarness h;
  h.registration.incarnation = {3, 1};
  h.BeginWith(1);
  EXPECT_TRUE(h.Succeed(0, 1));
  ASSERT_TRUE(h.NextReport());
  h.core.OnCallFailed(CallKind::kReport, CallFailure::kStale, h.now());
  h.Advance(seconds(2));
  ASSERT_EQ(h.Next(), CallKind::kRegister);
  h.registration.incarnation = {2, 9};
  h.core.OnRegistered(h.registration, h.now());
  h.Advance(seconds(2));
  ASSERT_EQ(h.Next(), CallKind::kRegister);
  h.registration.incarnation = {4, 1};
  h.core.OnRegistered(h.registration, h.now());
  ASSERT_TRUE(h.NextReport());
  EXPECT_EQ(h.request.incarnation, h.registration.incarnation);
}

TEST(AgentCore, ACoordinatorThatIsBackIsRegisteredWithAtOnce) {
  CoreHarness h;
  h.BeginWith(1);
  EXPECT_TRUE(h.Succeed(0, 1));
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(h.NextReport());
    h.core.OnCallFailed(CallKind::kReport, CallFailure::kUnreachable, h.now());
    h.Advance(seconds(2));
  }
  ASSERT_TRUE(h.NextReport());
  h.core.OnCallFailed(CallKind::kReport, CallFailure::kStale, h.now());
  h.Advance(milliseconds(50));
  EXPECT_EQ(h.Next(), CallKind::kRegister);
}

TEST(AgentCore, WaitsForABusyCoordinatorLongerEachTime) {
  CoreHarness h;
  h.BeginWith(1);
  EXPECT_TRUE(h.Succeed(0, 1));
  for (const int64_t wait : {50, 100, 200, 400, 800, 1000, 1000}) {
    ASSERT_TRUE(h.NextReport());
    h.core.OnCallFailed(CallKind::kReport, CallFailure::kBusy, h.now());
    EXPECT_EQ(h.Next(), CallKind::kNone);
    EXPECT_EQ(h.core.WakeAt() - h.now(), milliseconds(wait));
    h.Advance(milliseconds(wait));
  }
}

TEST(AgentCore, ABusyCoordinatorIsNotAway) {
  AgentOptions options;
  options.away_limit = seconds(30);
  CoreHarness h(1, options);
  h.BeginWith(1);
  EXPECT_TRUE(h.Succeed(0, 1));
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(h.NextReport());
    h.core.OnCallFailed(CallKind::kReport, CallFailure::kBusy, h.now());
    h.Advance(seconds(1));
  }
  ASSERT_TRUE(h.NextReport());
  h.Answer(h.SettleAll());
  EXPECT_EQ(h.core.held(), 0U);
}

TEST(AgentCore, AnAnswerOfALowerEpochIsNotTaken) {
  CoreHarness h;
  h.registration.incarnation = {4, 1};
  h.Begin();
  job::ExchangeReply reply;
  reply.epoch = 3;
  reply.leased.push_back(CoreHarness::Lease(1, 3));
  h.Answer(reply);
  EXPECT_EQ(h.core.held(), 0U);
}

}  // namespace
}  // namespace parallelrun::agent
