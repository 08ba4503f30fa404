// AgentCore with a script that keeps several mini-batches in flight; and what processes tell.
#include <gmock/gmock.h>

#include <utility>

#include "tests/unit/agent/core/harness.h"

namespace parallelrun::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class AsyncHarness : public CoreHarness {
 public:
  explicit AsyncHarness(uint32_t processes = 1) : CoreHarness(processes) {
    registration.async = true;
  }
};

TEST(AgentCoreAsync, EightAreInFlightAndAnswersComeInAnyOrder) {
  AsyncHarness h;
  h.BeginWith(9);
  EXPECT_THAT(h.given[0], ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_TRUE(h.core.OnRows(0, 5, "part "));
  EXPECT_TRUE(h.Succeed(0, 5, "five\n"));
  EXPECT_FALSE(h.Succeed(0, 5));
  EXPECT_EQ(h.given[0].back(), 9U);
  EXPECT_TRUE(h.Succeed(0, 2));
  h.Advance(milliseconds(5));
  ASSERT_TRUE(h.NextReport());
  ASSERT_THAT(h.request.finished, SizeIs(2));
  EXPECT_EQ(h.request.finished[0].id, 4U);
  EXPECT_EQ(h.request.finished[0].rows, "part five\n");
}

TEST(AgentCoreAsync, SlowMiniBatchesStayEightInFlight) {
  AsyncHarness h;
  h.BeginWith(20);
  for (uint64_t sequence = 1; sequence <= 4; ++sequence) {
    h.Advance(seconds(5));
    h.Succeed(0, sequence);
  }
  EXPECT_THAT(h.given[0], SizeIs(12));
  h.Advance(seconds(1));
  ASSERT_TRUE(h.NextReport());
  EXPECT_EQ(h.request.want, 0U);  // 16 wait or run; 9 would do
}

TEST(AgentCoreAsync, TheLimitCountsFromTheHandOutOfEach) {
  AsyncHarness h;
  h.BeginWith(2);
  h.Work(0, 2, Phase::kWaiting, h.now());
  h.Advance(seconds(40));
  h.Succeed(0, 1);
  h.Advance(seconds(20));
  EXPECT_THAT(h.killed, IsEmpty());
  h.Advance(milliseconds(200));
  EXPECT_THAT(h.killed, ElementsAre(0));
  h.Exit(0, "was killed by signal 9 (SIGKILL)");
  ASSERT_TRUE(h.NextReport());
  ASSERT_THAT(h.request.finished, SizeIs(2));
  EXPECT_EQ(h.request.finished[1].cause, job::Cause::kRunTimeout);
  EXPECT_THAT(std::string(h.request.finished[1].message), HasSubstr("no result came within"));
}

// The killer is the fifth of five: nobody else may be blamed, and it is after it was alone.
TEST(AgentCoreAsync, ThoseThatWereThereAtADeathAreTriedAlone) {
  AsyncHarness h;
  h.BeginWith(5);
  std::map<uint64_t, job::BatchId> ids;
  h.Work(0, 5, Phase::kWaiting, h.now());
  h.Exit(0);
  std::vector<job::BatchId> failed;
  uint32_t process = 1;
  size_t answered = 0;
  for (int round = 0; round < 10 && answered < 5; ++round) {
    ASSERT_TRUE(h.core.OnReady(process, false, h.now()));
    h.Step();
    while (!h.given[process].empty() && answered < 5) {
      ASSERT_THAT(h.given[process], SizeIs(1)) << "not alone";
      const uint64_t sequence = h.given[process].front();
      h.given[process].clear();
      h.Work(process, sequence, Phase::kRun, h.now());
      if (++answered == 5) {
        h.Exit(process);
        break;
      }
      ASSERT_TRUE(h.Succeed(process, sequence));
    }
    ++process;
  }
  ASSERT_TRUE(h.NextReport());
  ASSERT_THAT(h.request.finished, SizeIs(5));
  for (const job::Finished& f : h.request.finished) {
    EXPECT_EQ(f.kind, f.id == 4 ? job::Finished::Kind::kFailed : job::Finished::Kind::kSucceeded)
        << f.id;
  }
}

TEST(AgentCoreTold, MetricsAndHeadersArriveInOrderBeforeTheResult) {
  CoreHarness h;
  h.BeginWith(1);
  using Kind = job::ProcessEvent::Kind;
  EXPECT_TRUE(h.core.OnTold(0, Kind::kHeader, "a b"));
  EXPECT_TRUE(h.core.OnTold(0, Kind::kMetric, "{}"));
  EXPECT_FALSE(h.core.OnTold(7, Kind::kMetric, "{}"));
  EXPECT_FALSE(h.core.OnTold(0, Kind::kMetric, std::string(job::kMaxMetricBytes + 1, 'x')));
  EXPECT_FALSE(h.core.OnTold(0, Kind::kHeader, std::string(job::kMaxHeaderBytes + 1, 'x')));
  h.Succeed(0, 1);
  ASSERT_TRUE(h.NextReport());
  ASSERT_THAT(h.request.events, SizeIs(2));
  EXPECT_EQ(h.request.events[0].kind, Kind::kHeader);
  EXPECT_EQ(h.request.events[0].message, "a b");
  EXPECT_EQ(h.request.events[0].log, "1");
  EXPECT_EQ(h.request.events[1].kind, Kind::kMetric);
  EXPECT_EQ(h.request.events[1].log, "2");
  ASSERT_THAT(h.request.finished, SizeIs(1));
  // Not answered: told again with the same numbers.
  h.core.OnCallFailed(CallKind::kReport, CallFailure::kUnreachable, h.now());
  h.Advance(seconds(2));
  ASSERT_TRUE(h.NextReport());
  ASSERT_THAT(h.request.events, SizeIs(2));
  EXPECT_EQ(h.request.events[1].log, "2");
}

TEST(AgentCoreTold, WhoToldAHeaderIsToldThatOfTheJob) {
  CoreHarness h;
  h.registration.processes = 3;
  h.BeginWith(0);
  using Kind = job::ProcessEvent::Kind;
  EXPECT_TRUE(h.core.OnTold(0, Kind::kHeader, "a b"));
  EXPECT_TRUE(h.core.OnTold(2, Kind::kHeader, "b a"));
  ASSERT_TRUE(h.NextReport());
  // The answer is lost, so they are told by that of the next report.
  h.core.OnCallFailed(CallKind::kReport, CallFailure::kUnreachable, h.now());
  h.Advance(seconds(2));
  EXPECT_THAT(h.told_headers, IsEmpty());
  ASSERT_TRUE(h.NextReport());
  EXPECT_THAT(h.request.events, SizeIs(2));
  job::ExchangeReply reply = h.Reply();
  reply.header = "a b";
  h.Answer(reply);
  h.Step();
  EXPECT_THAT(h.told_headers, ElementsAre(std::pair(0U, "a b"), std::pair(2U, "a b")));
  h.core.OnReply(CallKind::kPark, reply, h.now());
  h.Step();
  EXPECT_THAT(h.told_headers, SizeIs(2));
}

TEST(AgentCoreTold, WhatDoesNotFitGoesFirstAndFloodsAreBounded) {
  CoreHarness h;
  h.BeginWith(1);
  using Kind = job::ProcessEvent::Kind;
  const std::string header(job::kMaxHeaderBytes, 'h');
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(h.core.OnTold(0, Kind::kHeader, header));
  h.Succeed(0, 1);
  ASSERT_TRUE(h.NextReport());
  EXPECT_LE(job::Encode(h.request).size(), job::kMaxExchangeBytes);
  EXPECT_LT(h.request.events.size(), 100U);
  EXPECT_THAT(h.request.finished, IsEmpty());
  h.Answer(h.Reply());
  ASSERT_TRUE(h.NextReport());
  EXPECT_THAT(h.request.finished, SizeIs(1));
  h.Answer(h.SettleAll());
  for (int i = 0; i < 5000; ++i) ASSERT_TRUE(h.core.OnTold(0, Kind::kMetric, "{}"));
  EXPECT_GT(h.core.dropped_metrics(), 4000U);
  h.Exit(0);
  ASSERT_TRUE(h.NextReport());
  EXPECT_EQ(h.request.events.back().kind, Kind::kExited);
}

TEST(AgentCoreTold, NotesSayWhatBecameOfEachMiniBatch) {
  CoreHarness h;
  h.BeginWith(2);
  h.Work(0, 1, Phase::kRun, h.now());
  h.Advance(milliseconds(30));
  EXPECT_TRUE(h.core.OnResult(
      0,
      {{.run_ns = 20'000'000, .cpu_ns = 15'000'000, .items_succeeded = 3, .row_count = 3},
       1,
       "a\nb\nc\n"},
      h.now()));
  h.Step();
  h.Work(0, 2, Phase::kRun, h.now());
  h.Advance(milliseconds(10));
  h.Exit(0);
  std::vector<MiniBatchNote> notes;
  h.core.TakeNotes(notes);
  ASSERT_THAT(notes, SizeIs(2));
  EXPECT_EQ(notes[0].id, 0U);
  EXPECT_EQ(notes[0].items_succeeded, 3U);
  EXPECT_EQ(notes[0].elapsed_ns, 30'000'000U);
  EXPECT_EQ(notes[0].cpu_ns, 15'000'000U);
  EXPECT_EQ(notes[0].run_ns, 20'000'000U);
  EXPECT_EQ(notes[0].error_kind, "");
  EXPECT_EQ(notes[1].error_kind, "ProcessEnded");
  EXPECT_EQ(notes[1].elapsed_ns, 10'000'000U);
  h.core.TakeNotes(notes);
  EXPECT_THAT(notes, IsEmpty());
}

}  // namespace
}  // namespace parallelrun::agent
