#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "agent/core/agent_core.h"
#include "tests/unit/agent/core/harness.h"

namespace parallelrun::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kWhy[] = "no space is left in /tmp/node";

struct RoomHarness : CoreHarness {
  RoomHarness() : CoreHarness(1) {}
  void Fail(uint64_t sequence, const std::string& kind) {
    FailedAnswer answer;
    answer.sequence = sequence;
    answer.kind = kind;
    answer.message = "OSError: [Errno 28] (s.py:3)";
    ASSERT_TRUE(core.OnFailed(0, answer, now()));
    Step();
  }
  // Of the report that is due, which is answered.
  std::vector<std::string> Told(job::ProcessEvent::Kind kind) {
    std::vector<std::string> told;
    if (!NextReport()) return told;
    for (const job::ProcessEvent& event : request.events) {
      if (event.kind == kind) told.emplace_back(event.message);
    }
    Answer(SettleAll());
    return told;
  }
};

TEST(AgentCoreRoom, WithoutRoomNothingIsBegunAndWhatWaitsGoesBack) {
  RoomHarness h;
  h.BeginWith(2);
  ASSERT_THAT(h.given[0], SizeIs(1));
  h.core.OnRoom(kWhy);
  h.Step();
  ASSERT_TRUE(h.NextReport());
  EXPECT_EQ(h.request.want, 0U);
  ASSERT_THAT(h.request.events, SizeIs(1));
  EXPECT_EQ(h.request.events[0].kind, job::ProcessEvent::Kind::kNoRoom);
  EXPECT_EQ(h.request.events[0].message, kWhy);
  ASSERT_THAT(h.request.finished, SizeIs(1));
  EXPECT_EQ(h.request.finished[0].id, 1U);
  EXPECT_EQ(h.request.finished[0].kind, job::Finished::Kind::kReturned);
  job::ExchangeReply reply = h.SettleAll();
  reply.leased.push_back(CoreHarness::Lease(5));  // it crossed
  h.Answer(reply);
  EXPECT_THAT(h.given[0], SizeIs(1));

  h.core.OnRoom("");
  h.Advance(seconds(1));
  ASSERT_TRUE(h.NextReport());
  EXPECT_GT(h.request.want, 0U);
  EXPECT_EQ(h.request.events.back().kind, job::ProcessEvent::Kind::kNoRoom);
  EXPECT_EQ(h.request.events.back().message, "");
}

TEST(AgentCoreRoom, WithoutRoomNoFailureAndNoDeathIsCounted) {
  RoomHarness h;
  h.BeginWith(1);
  h.core.OnRoom(kWhy);
  h.Fail(1, "Exception");
  ASSERT_TRUE(h.NextReport());
  ASSERT_THAT(h.request.finished, SizeIs(1));
  EXPECT_EQ(h.request.finished[0].kind, job::Finished::Kind::kReturned);
  h.Answer(h.SettleAll());

  RoomHarness dies;
  dies.BeginWith(1);
  dies.Work(0, 1, Phase::kRun, dies.now());
  dies.core.OnRoom(kWhy);
  dies.Exit(0, "was killed by signal 7 (SIGBUS)");
  ASSERT_TRUE(dies.NextReport());
  ASSERT_THAT(dies.request.finished, SizeIs(1));
  EXPECT_EQ(dies.request.finished[0].kind, job::Finished::Kind::kReturned);
  EXPECT_THAT(dies.started, SizeIs(1));  // its successor waits too
  dies.core.OnRoom("");
  dies.Step();
  EXPECT_THAT(dies.started, SizeIs(2));
}

// What a script needs at once, or elsewhere, only trying tells: later each time, and told.
TEST(AgentCoreRoom, ARunThatRunsOutOfSpaceIsTriedLaterAndLater) {
  RoomHarness h;
  h.BeginWith(1);
  uint64_t sequence = 1;
  for (const int wait : {1, 2, 4, 8, 16, 30, 30}) {
    SCOPED_TRACE(wait);
    h.Fail(sequence, kNoSpaceKind);
    ASSERT_TRUE(h.NextReport());
    ASSERT_THAT(h.request.finished, SizeIs(1));
    EXPECT_EQ(h.request.finished[0].kind, job::Finished::Kind::kReturned);
    EXPECT_EQ(h.request.want, 0U);
    h.Answer(h.SettleAll());
    h.Advance(seconds(wait) - milliseconds(1));
    EXPECT_FALSE(h.NextReport());
    h.Advance(milliseconds(1));
    ASSERT_TRUE(h.NextReport());
    EXPECT_GT(h.request.want, 0U);
    job::ExchangeReply reply = h.Reply();
    reply.leased.push_back({9, {1, 200 + sequence}, 1, "work"});
    h.Answer(reply);
    ASSERT_EQ(h.given[0].back(), ++sequence);
  }
  ASSERT_TRUE(h.Succeed(0, sequence));
  EXPECT_THAT(h.Told(job::ProcessEvent::Kind::kRanOut), ElementsAre(""));
}

TEST(AgentCoreRoom, ItIsToldOnceAndAgainToANewEpoch) {
  RoomHarness h;
  h.BeginWith(2);
  h.Fail(1, kNoSpaceKind);
  EXPECT_THAT(h.Told(job::ProcessEvent::Kind::kRanOut),
              ElementsAre("OSError: [Errno 28] (s.py:3)"));
  h.core.OnRoom(kWhy);
  EXPECT_THAT(h.Told(job::ProcessEvent::Kind::kNoRoom), ElementsAre(kWhy));
  h.core.OnRoom(kWhy);
  EXPECT_FALSE(h.NextReport());
  h.registration.incarnation = {2, 1};
  h.core.OnRegistered(h.registration, h.now());
  EXPECT_THAT(h.Told(job::ProcessEvent::Kind::kNoRoom), ElementsAre(kWhy));
}

TEST(AgentCoreRoom, AnInitThatRunsOutOfSpaceIsNoFailedInit) {
  RoomHarness h;
  ASSERT_EQ(h.Next(), CallKind::kRegister);
  h.core.OnRegistered(h.registration, h.now());
  for (uint32_t process = 0; process < 10; ++process) {
    h.Step();
    ASSERT_THAT(h.started, SizeIs(process + 1));
    h.core.OnInitRanOut(process, "OSError: [Errno 28]", h.now());
    h.Exit(process, "exited with status 1");
    ASSERT_THAT(h.started, SizeIs(process + 1));
    h.Advance(seconds(30));
  }
  EXPECT_EQ(h.core.end(), AgentEnd::kNone);
}

}  // namespace
}  // namespace parallelrun::agent
