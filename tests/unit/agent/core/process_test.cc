#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "agent/core/agent_core.h"
#include "tests/unit/agent/core/harness.h"

namespace parallelrun::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

// One process that holds two mini-batches: sequences 1 (id 0) and 2 (id 1); 2 ms each.
struct TwoGiven : CoreHarness {
  explicit TwoGiven(uint32_t processes = 1) : CoreHarness(processes) {}
  void Start() {
    BeginWith(3);
    Advance(milliseconds(5));
    ASSERT_TRUE(Succeed(0, 1));
    ASSERT_THAT(given[0], ElementsAre(1, 2, 3));
    ASSERT_TRUE(NextReport());
    Answer(SettleAll());
  }
};

struct TimeoutCase {
  Phase phase;
  Duration after;
  bool killed;
  job::Cause cause;
};

TEST(AgentCoreProcess, TimeOutsByPhase) {
  const TimeoutCase cases[] = {
      {Phase::kRun, seconds(59), false, job::Cause::kRun},
      {Phase::kRun, seconds(61), true, job::Cause::kRunTimeout},
      {Phase::kLoading, seconds(61), false, job::Cause::kRun},
      {Phase::kLoading, seconds(601), true, job::Cause::kOverheadTimeout},
      {Phase::kRows, seconds(601), true, job::Cause::kOverheadTimeout},
  };
  for (const TimeoutCase& c : cases) {
    SCOPED_TRACE(static_cast<int>(c.phase));
    TwoGiven h;
    h.Start();
    h.Work(0, 2, c.phase, h.now());
    h.Advance(c.after);
    EXPECT_EQ(h.killed.size(), c.killed ? 1U : 0U);
    if (!c.killed) continue;
    h.Exit(0, "was killed by signal 9 (SIGKILL)");
    ASSERT_TRUE(h.NextReport());
    ASSERT_THAT(h.request.finished, SizeIs(1));
    EXPECT_EQ(h.request.finished[0].id, 1U);
    EXPECT_EQ(h.request.finished[0].cause, c.cause);
    EXPECT_EQ(h.request.finished[0].log, "user/stderr/0/process000.stderr.txt");
    EXPECT_EQ(h.core.held(), 2U);  // the other one is queued here
    EXPECT_THAT(h.started, SizeIs(2));
  }
}

// Whether it waits, or is still at one whose answer came: it is at none of those that it holds.
TEST(AgentCoreProcess, AProcessThatBeginsWithNothingIsKilledWithoutBlame) {
  for (const auto& [sequence, phase] :
       {std::pair<uint64_t, Phase>{1, Phase::kWaiting}, {1, Phase::kRows}}) {
    SCOPED_TRACE(static_cast<int>(phase));
    TwoGiven h;
    h.Start();
    h.Work(0, sequence, phase, h.now());
    h.Advance(seconds(599));
    EXPECT_THAT(h.killed, IsEmpty());
    h.Advance(seconds(2));
    ASSERT_THAT(h.killed, ElementsAre(0));
    EXPECT_THAT(h.why, StartsWith("process000 was killed: it held 2 mini-batches and began with "
                                  "none of them within 10m00s (taskOverheadTimeoutSeconds)."));
    EXPECT_THAT(h.why, HasSubstr("a thread that run() left behind"));
    h.Exit(0, "was killed by signal 9 (SIGKILL)");
    EXPECT_EQ(h.core.held(), 2U);
    ASSERT_THAT(h.started, ElementsAre(0, 1));
    EXPECT_TRUE(h.core.OnReady(1, false, h.now()));
    h.Step();
    EXPECT_THAT(h.given[1], SizeIs(2));  // both, again
    ASSERT_TRUE(h.NextReport());
    EXPECT_THAT(h.request.finished, IsEmpty());
  }
}

// The limit counts from what happened last: the hand-out, the answer before, or the page's time.
TEST(AgentCoreProcess, AProcessHasTheWholeLimitToBegin) {
  TwoGiven h;
  h.Start();
  h.Advance(seconds(400));
  EXPECT_TRUE(h.Succeed(0, 2));
  h.Advance(seconds(400));
  h.Work(0, 2, Phase::kWaiting, h.now());
  h.Advance(seconds(400));
  EXPECT_THAT(h.killed, IsEmpty());
  h.Advance(seconds(201));
  EXPECT_THAT(h.killed, ElementsAre(0));

  CoreHarness idle;  // for long, then given something
  idle.Begin();
  idle.Work(0, 0, Phase::kWaiting, idle.now());
  idle.Advance(seconds(9999));
  job::ExchangeReply reply = idle.Reply();
  reply.leased.push_back(CoreHarness::Lease(0));
  idle.Answer(reply);
  idle.Advance(seconds(599));
  EXPECT_THAT(idle.killed, IsEmpty());
}

// As where init() leaves a thread that keeps the interpreter: a job must always end.
TEST(AgentCoreProcess, ProcessesThatNeverBeginAreGivenUp) {
  CoreHarness h;
  h.BeginWith(1);
  for (uint32_t death = 0; death < 3; ++death) {
    ASSERT_THAT(h.started, SizeIs(death + 1));
    h.Work(death, 0, Phase::kWaiting, h.now());
    h.Advance(seconds(601));
    ASSERT_THAT(h.killed, SizeIs(death + 1));
    EXPECT_THAT(h.why, HasSubstr("a thread that init() left behind"));
    h.Exit(death, "was killed by signal 9 (SIGKILL)");
    if (death == 2) break;
    ASSERT_TRUE(h.core.OnReady(death + 1, false, h.now()));
    h.Step();
  }
  EXPECT_THAT(h.started, SizeIs(3));
  EXPECT_THAT(h.core.end_message(), HasSubstr("3 in a row"));
}

// What the process wrote last is the mini-batch's at work, and of no other that is handed back.
TEST(AgentCoreProcess, ADeathTellsWhichOutputIsTheMiniBatchs) {
  const job::OutputRanges output{10, 25, 3, 4};
  for (const bool timed_out : {false, true}) {
    SCOPED_TRACE(timed_out);
    TwoGiven h;
    h.Start();
    h.Work(0, 2, Phase::kRun, h.now());
    if (timed_out) h.Advance(seconds(61));
    h.Exit(0, "was killed by signal 9 (SIGKILL)", output);
    ASSERT_TRUE(h.NextReport());
    ASSERT_THAT(h.request.finished, SizeIs(1));
    EXPECT_EQ(h.request.finished[0].id, 1U);
    EXPECT_EQ(h.request.finished[0].output, output);
  }
  TwoGiven idle;
  idle.Start();
  for (int deaths = 0; deaths < 3; ++deaths) {
    idle.Exit(idle.started.back(), "exited with status 1", output);
    ASSERT_TRUE(idle.core.OnReady(idle.started.back(), false, idle.now()));
    idle.Step();
  }
  ASSERT_TRUE(idle.NextReport());
  ASSERT_THAT(idle.request.finished, SizeIs(1));  // blamed, but it had not begun
  EXPECT_EQ(idle.request.finished[0].output, job::OutputRanges{});
}

TEST(AgentCoreProcess, AnAnswerThatCameBeforeTheKillCounts) {
  TwoGiven h;
  h.Start();
  h.Work(0, 2, Phase::kRun, h.now());
  h.Advance(seconds(61));
  ASSERT_THAT(h.killed, SizeIs(1));
  EXPECT_TRUE(h.Succeed(0, 2));
  h.Work(0, 3, Phase::kRun, h.now());  // an innocent one had begun
  h.Exit(0, "was killed by signal 9 (SIGKILL)");
  ASSERT_TRUE(h.NextReport());
  ASSERT_THAT(h.request.finished, SizeIs(1));
  EXPECT_EQ(h.request.finished[0].kind, job::Finished::Kind::kSucceeded);
  EXPECT_EQ(h.core.held(), 2U);
}

TEST(AgentCoreProcess, ADeathIsTheFaultOfTheMiniBatchAtWork) {
  TwoGiven h;
  h.Start();
  h.Work(0, 2, Phase::kRun, h.now());
  h.Exit(0, "was killed by signal 11 (SIGSEGV)");
  ASSERT_TRUE(h.NextReport());
  ASSERT_THAT(h.request.finished, SizeIs(1));
  EXPECT_EQ(h.request.finished[0].id, 1U);
  EXPECT_EQ(h.request.finished[0].cause, job::Cause::kProcessEnded);
  EXPECT_EQ(h.request.finished[0].message, "process000 was killed by signal 11 (SIGSEGV)");
  ASSERT_THAT(h.request.events, SizeIs(1));
  EXPECT_EQ(h.request.events[0].kind, job::ProcessEvent::Kind::kExited);
}

TEST(AgentCoreProcess, ADeathBetweenMiniBatchesIsNobodysFaultThreeTimes) {
  TwoGiven h;
  h.Start();
  uint32_t process = 0;
  for (int i = 0; i < 2; ++i) {
    h.Exit(process);
    process = h.started.back();
    EXPECT_TRUE(h.core.OnReady(process, false, h.now()));
    h.Step();
    EXPECT_THAT(h.given[process], SizeIs(2));
    EXPECT_EQ(h.core.held(), 2U);
  }
  h.Exit(process);
  ASSERT_TRUE(h.NextReport());
  ASSERT_THAT(h.request.finished, SizeIs(1));
  EXPECT_EQ(h.request.finished[0].cause, job::Cause::kProcessEnded);
}

TEST(AgentCoreProcess, AnswersOutOfOrderAreNotTaken) {
  TwoGiven h;
  h.Start();
  EXPECT_FALSE(h.Succeed(0, 3));
  EXPECT_FALSE(h.core.OnRows(0, 3, "x"));
  EXPECT_FALSE(h.Succeed(0, 99));
  EXPECT_FALSE(h.Succeed(7, 2));
  EXPECT_FALSE(h.core.OnReady(0, false, h.now()));  // twice
  EXPECT_TRUE(h.Succeed(0, 2));
}

// Else the next row in the output would stand on the same line, or none would be there at all.
TEST(AgentCoreProcess, RowsAreWholeLinesAndAsManyAsItSays) {
  struct Case {
    const char* part;
    const char* rows;
    uint32_t count;
    bool whole;
  };
  for (const bool append_row : {true, false}) {
    for (const Case& one :
         {Case{"", "a\nb\n", 2, true}, Case{"", "a\nb", 2, false}, Case{"", "a\nb\n", 3, false},
          Case{"", "a\nb\n", 1, true}, Case{"", "", 0, true}, Case{"", "", 1, false},
          Case{"a\n", "b\n", 2, true}, Case{"a\n", "", 1, true}, Case{"a", "", 1, false},
          Case{"a\n", "b\n", 4'000'000'000, false}}) {
      CoreHarness h;
      h.registration.rows = append_row ? Rows::kLines : Rows::kNone;
      h.BeginWith(1);
      if (*one.part != '\0') {
        EXPECT_TRUE(h.core.OnRows(0, 1, one.part));
      }
      const bool empty = *one.part == '\0' && *one.rows == '\0';
      EXPECT_EQ(
          h.core.OnResult(
              0, {{.run_ns = 1000, .items_succeeded = 1, .row_count = one.count}, 1, one.rows},
              h.now()),
          append_row ? one.whole : empty)
          << one.part << one.rows << one.count;
    }
  }
}

TEST(AgentCoreProcess, PartsOfAFailedAttemptAreVoid) {
  CoreHarness h;
  h.BeginWith(1);
  EXPECT_TRUE(h.core.OnRows(0, 1, "half"));
  EXPECT_TRUE(h.core.OnFailed(
      0, {{.run_ns = 5}, 1, job::Cause::kRun, "Exception", "ValueError: x", ""}, h.now()));
  h.Step();
  ASSERT_TRUE(h.NextReport());
  ASSERT_THAT(h.request.finished, SizeIs(1));
  EXPECT_EQ(h.request.finished[0].kind, job::Finished::Kind::kFailed);
  EXPECT_EQ(h.request.finished[0].log, "user/error/0/process000.txt");
  EXPECT_THAT(h.request.parts, IsEmpty());
}

TEST(AgentCoreProcess, GivesUpAfterThreeTimesTheProcesses) {
  CoreHarness h(2);
  ASSERT_EQ(h.Next(), CallKind::kRegister);
  h.core.OnRegistered(h.registration, h.now());
  h.Step();
  for (uint32_t process = 0; process < 6; ++process) {
    ASSERT_GT(h.started.size(), process);
    h.core.OnInitFailed(process, "OSError: no such model (score.py:1)", false, h.now());
    h.Exit(process, "exited with status 1");
  }
  // Six failed; a seventh had replaced the fifth before the sixth failed.
  EXPECT_THAT(h.started, SizeIs(7));
  h.Exit(6, "exited with status 1");
  EXPECT_THAT(h.started, SizeIs(7));
  EXPECT_EQ(h.core.end(), AgentEnd::kNone);  // not yet told
  ASSERT_EQ(h.Next(), CallKind::kReport);
  EXPECT_EQ(h.request.events.front().kind, job::ProcessEvent::Kind::kInitFailed);
  EXPECT_EQ(h.request.events.back().kind, job::ProcessEvent::Kind::kGaveUp);
  h.Answer(h.Reply());
  EXPECT_EQ(h.core.end(), AgentEnd::kGaveUp);
}

TEST(AgentCoreProcess, AnImportThatFindsNothingIsNotTriedAgain) {
  CoreHarness h(2);
  ASSERT_EQ(h.Next(), CallKind::kRegister);
  h.core.OnRegistered(h.registration, h.now());
  h.Step();
  const std::string why = "ModuleNotFoundError: No module named 'x' (score.py:1)";
  h.core.OnInitFailed(0, why, false, h.now());
  h.Exit(0);
  h.Exit(1);
  EXPECT_THAT(h.started, SizeIs(2));
  ASSERT_EQ(h.Next(), CallKind::kReport);
  ASSERT_FALSE(h.request.events.empty());
  EXPECT_EQ(h.request.events.back().kind, job::ProcessEvent::Kind::kGaveUp);
  EXPECT_EQ(h.request.events.back().message, why);
  EXPECT_EQ(h.request.events.back().log, "user/error/0/process000.txt");
  h.Answer(h.Reply());
  EXPECT_EQ(h.core.end(), AgentEnd::kGaveUp);
}

TEST(AgentCoreProcess, AnImportThatFailsWhereAnotherOneDidNotIsTriedAgain) {
  CoreHarness h(2);
  ASSERT_EQ(h.Next(), CallKind::kRegister);
  h.core.OnRegistered(h.registration, h.now());
  h.Step();
  EXPECT_TRUE(h.core.OnReady(0, false, h.now()));
  h.core.OnInitFailed(1, "ImportError: libx.so.1: cannot open (score.py:1)", false, h.now());
  h.Exit(1);
  EXPECT_THAT(h.started, SizeIs(3));
  EXPECT_EQ(h.core.end(), AgentEnd::kNone);
}

TEST(AgentCoreProcess, WhereItWasIsInTheMessageOfATimeOut) {
  CoreHarness h;
  h.BeginWith(1);
  h.Work(0, h.given.at(0).front(), Phase::kRun, h.now());
  h.Advance(h.registration.run_timeout + seconds(1));
  ASSERT_THAT(h.killed, ElementsAre(0));
  h.core.OnExited(0, "was killed by signal 9 (SIGKILL)", h.now(), {},
                  ". Its Python stack: run score.py:3 (score.py:3)");
  h.Step();
  ASSERT_TRUE(h.NextReport());
  ASSERT_THAT(h.request.finished, SizeIs(1));
  EXPECT_EQ(h.request.finished[0].error_kind, "RunTimeout");
  EXPECT_THAT(h.request.finished[0].message,
              EndsWith("process000 was killed. Its Python stack: run score.py:3 (score.py:3)"));
}

TEST(AgentCoreProcess, ASuccessfulInitStartsTheCountAgain) {
  CoreHarness h;
  ASSERT_EQ(h.Next(), CallKind::kRegister);
  h.core.OnRegistered(h.registration, h.now());
  h.Step();
  h.Exit(0);
  h.Exit(1);
  EXPECT_TRUE(h.core.OnReady(2, false, h.now()));
  h.Exit(2);  // one idle death
  h.Exit(3);
  h.Exit(4);
  EXPECT_THAT(h.started, SizeIs(6));
  h.Exit(5);
  EXPECT_THAT(h.started, SizeIs(6));
}

TEST(AgentCoreProcess, ProcessesThatDieIdleForEverEndTheNode) {
  CoreHarness h;
  ASSERT_EQ(h.Next(), CallKind::kRegister);
  h.core.OnRegistered(h.registration, h.now());
  h.Step();
  for (uint32_t process = 0; process < 3; ++process) {
    EXPECT_TRUE(h.core.OnReady(process, false, h.now()));
    h.Exit(process);
  }
  EXPECT_THAT(h.started, SizeIs(3));
}

TEST(AgentCoreProcess, AFatalFailureEndsTheNodeAtOnce) {
  CoreHarness h(2);
  ASSERT_EQ(h.Next(), CallKind::kRegister);
  h.core.OnRegistered(h.registration, h.now());
  h.Step();
  h.core.OnInitFailed(0, "score.py is not there", true, h.now());
  h.Step();
  EXPECT_THAT(h.killed, ElementsAre(1));
  h.Exit(0);
  h.Exit(1);
  ASSERT_EQ(h.Next(), CallKind::kReport);
  ASSERT_THAT(h.request.events, SizeIs(1));
  EXPECT_EQ(h.request.events[0].kind, job::ProcessEvent::Kind::kScriptUnusable);
  h.Answer(h.Reply());
  EXPECT_EQ(h.core.end(), AgentEnd::kGaveUp);
  EXPECT_THAT(h.core.end_message(), HasSubstr("score.py"));
}

TEST(AgentCoreProcess, AProcessThatEndedIsReplacedUnderANewName) {
  CoreHarness h(2);
  h.Begin();
  h.core.OnExited(0, "exited with status 0", h.now());
  h.core.Step(h.now());
  std::vector<WorkerAction> actions;
  h.core.TakeActions(actions);
  ASSERT_THAT(actions, SizeIs(1));
  EXPECT_EQ(actions[0].process, 2U);
}

// Two epochs that know nothing of each other may grant the same range, and another one in between.
TEST(AgentCoreProcess, ANameOfAProcessThatLivesIsNotTakenAgain) {
  CoreHarness h(2);
  h.registration.first_process = 1000;
  h.Begin();
  for (const uint32_t first : {0U, 1000U}) {
    h.registration.incarnation = {3, first + 1};
    h.registration.first_process = first;
    h.core.OnRegistered(h.registration, h.now());
  }
  h.Exit(1001);
  EXPECT_THAT(h.started, ElementsAre(1000, 1001, 1001)) << "1000 lives";
}

TEST(AgentCoreProcess, DrainReturnsTheUnstartedAndFinishesTheRest) {
  CoreHarness h;
  h.BeginWith(3);
  h.Work(0, 1, Phase::kRun, h.now());
  h.core.Drain(seconds(25), h.now());
  h.Step();
  ASSERT_TRUE(h.NextReport());
  ASSERT_THAT(h.request.finished, SizeIs(2));
  EXPECT_EQ(h.request.finished[0].kind, job::Finished::Kind::kReturned);
  EXPECT_EQ(h.request.want, 0U);
  job::ExchangeReply reply = h.SettleAll();
  reply.leased.push_back(CoreHarness::Lease(9));  // crossed the drain
  h.Answer(reply);
  ASSERT_TRUE(h.NextReport());
  ASSERT_THAT(h.request.finished, SizeIs(1));
  EXPECT_EQ(h.request.finished[0].id, 9U);
  h.Answer(h.SettleAll());
  EXPECT_THAT(h.stopped, IsEmpty());
  EXPECT_TRUE(h.Succeed(0, 1));
  EXPECT_THAT(h.stopped, ElementsAre(0));
  h.Exit(0, "exited with status 0");
  EXPECT_EQ(h.core.end(), AgentEnd::kNone);
  ASSERT_TRUE(h.NextReport());
  h.Answer(h.SettleAll());
  EXPECT_EQ(h.core.end(), AgentEnd::kDrained);
  EXPECT_THAT(h.killed, IsEmpty());
}

TEST(AgentCoreProcess, ADrainKillsWhatIsLateWithoutBlame) {
  CoreHarness h;
  h.BeginWith(1);
  h.Work(0, 1, Phase::kRun, h.now());
  h.core.Drain(seconds(25), h.now());
  h.Advance(seconds(24));
  EXPECT_THAT(h.killed, IsEmpty());
  h.Advance(seconds(1));
  EXPECT_THAT(h.killed, ElementsAre(0));
  h.Exit(0, "was killed by signal 9 (SIGKILL)");
  ASSERT_TRUE(h.NextReport());
  ASSERT_THAT(h.request.finished, SizeIs(1));
  EXPECT_EQ(h.request.finished[0].kind, job::Finished::Kind::kReturned);
  // Nobody answers: it ends all the same.
  h.core.OnCallFailed(CallKind::kReport, CallFailure::kUnreachable, h.now());
  h.Advance(seconds(3));
  EXPECT_EQ(h.core.end(), AgentEnd::kDrained);
}

TEST(AgentCoreProcess, ASecondSignalStopsNow) {
  CoreHarness h;
  h.BeginWith(1);
  h.Work(0, 1, Phase::kRun, h.now());
  h.core.Drain(seconds(25), h.now());
  h.Step();
  h.core.StopNow(h.now());
  h.Step();
  EXPECT_THAT(h.killed, ElementsAre(0));
}

TEST(AgentCoreProcess, FinishStopsTheIdleAndKillsTheBusy) {
  CoreHarness h(2);
  h.BeginWith(1);
  job::ExchangeReply reply = h.Reply();
  reply.directive = job::Directive::kFinish;
  h.Advance(seconds(3));
  ASSERT_TRUE(h.NextReport());
  h.Answer(reply);
  EXPECT_THAT(h.stopped, ElementsAre(1));
  EXPECT_THAT(h.killed, ElementsAre(0));
  h.Exit(0, "was killed by signal 9 (SIGKILL)");
  EXPECT_EQ(h.core.end(), AgentEnd::kNone);
  h.Advance(seconds(31));  // shutdown() hangs
  EXPECT_THAT(h.killed, ElementsAre(0, 1));
  h.Exit(1);
  EXPECT_EQ(h.core.end(), AgentEnd::kFinished);
}

TEST(AgentCoreProcess, AnUnregisteredAgentDrainsAtOnce) {
  CoreHarness h;
  h.core.Drain(seconds(25), h.now());
  h.Step();
  EXPECT_EQ(h.core.end(), AgentEnd::kDrained);
}

TEST(AgentCoreProcess, ANewRangeOfNamesIsAskedFor) {
  CoreHarness h;
  h.BeginWith(3);
  EXPECT_TRUE(h.Succeed(0, 1));
  uint32_t process = 0;
  while (h.started.size() < kProcessRange) {
    h.Exit(process);
    process = h.started.back();
    EXPECT_TRUE(h.core.OnReady(process, false, h.now()));
    h.Step();
    // Somebody answers now and then, so that the node is not given up.
    h.core.OnFailed(process,
                    {{.run_ns = 1}, h.given[process].at(0), job::Cause::kRun, "Exception", "x", ""},
                    h.now());
    if (h.core.held() < 5) {
      h.Advance(milliseconds(1));
    }
    while (h.NextReport()) {
      job::ExchangeReply reply = h.SettleAll();
      reply.leased.push_back(CoreHarness::Lease(process + 10));
      h.Answer(reply);
      if (h.request.finished.empty()) break;
    }
  }
  h.Exit(process);
  EXPECT_THAT(h.started, SizeIs(kProcessRange));
  h.Advance(seconds(5));
  CallKind call = h.Next();
  if (call == CallKind::kPark) call = h.Next();
  EXPECT_EQ(call, CallKind::kRegister);
}

}  // namespace
}  // namespace parallelrun::agent
