#include "agent/core/processes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace parallelrun::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;
using Do = WorkerAction::Kind;

constexpr Duration kMuch = seconds(1);

// Processes 0 to `count` - 1, ready; keys are ten times the sequences.
struct ProcessesHarness {
  explicit ProcessesHarness(uint32_t count = 1) : processes(terms) {
    for (uint32_t number = 0; number < count; ++number) {
      processes.Start(number);
      processes.Ready(number);
    }
    Actions();
  }
  void Give(uint32_t number, int count = 1) {
    for (int i = 0; i < count; ++i) processes.Give(number, 10 * ++given, 0, "work", now);
  }
  Checked Check() {
    return processes.Check(now, kMuch, [](Key, Instant) { return false; });
  }
  std::vector<Do> Actions() {
    std::vector<WorkerAction> actions;
    processes.TakeActions(actions);
    std::vector<Do> kinds;
    for (const WorkerAction& action : actions) kinds.push_back(action.kind);
    return kinds;
  }

  Registration terms;
  Processes processes;
  Instant now{seconds(100)};
  uint64_t given = 0;
};

TEST(Processes, StartsOneOfEachName) {
  Registration terms;
  Processes processes(terms);
  EXPECT_TRUE(processes.Start(4));
  EXPECT_FALSE(processes.Start(4));
  EXPECT_EQ(processes.StateOf(4), ProcessState::kStarting);
  EXPECT_EQ(processes.StateOf(5), ProcessState::kGone);
  EXPECT_FALSE(processes.Idlest(1, 0)) << "it is not ready";
}

TEST(Processes, TheOneThatHoldsLeastIsNext) {
  ProcessesHarness h(2);
  EXPECT_EQ(h.processes.Idlest(2, 0), 0U);
  h.Give(0);
  EXPECT_EQ(h.processes.Idlest(2, 0), 1U);
  h.Give(1);
  EXPECT_EQ(h.processes.Idlest(2, 0), 0U);
  EXPECT_FALSE(h.processes.Idlest(1, 0));
  EXPECT_FALSE(h.processes.AnyIdle());
  EXPECT_EQ(h.processes.given(), 2U);
}

TEST(Processes, AnswersComeInTheirOrder) {
  ProcessesHarness h;
  h.Give(0, 2);
  EXPECT_FALSE(h.processes.Answerable(0, 2));
  EXPECT_FALSE(h.processes.Answerable(7, 1));
  EXPECT_EQ(h.processes.Answerable(0, 1), 10U);
  h.now += milliseconds(30);
  EXPECT_EQ(h.processes.Answer(0, 1, h.now).elapsed, milliseconds(30));
  h.now += milliseconds(5);
  const Answered second = h.processes.Answer(0, 2, h.now);
  EXPECT_EQ(second.key, 20U);
  EXPECT_EQ(second.elapsed, milliseconds(5)) << "it waited behind the first";
  EXPECT_EQ(h.processes.given(), 0U);
}

TEST(Processes, InAsyncModeAnyMayBeAnswered) {
  ProcessesHarness h;
  h.terms.async = true;
  h.Give(0, 2);
  EXPECT_EQ(h.processes.Answerable(0, 2), 20U);
  h.now += milliseconds(30);
  h.processes.Answer(0, 2, h.now);
  h.now += milliseconds(30);
  EXPECT_EQ(h.processes.Answer(0, 1, h.now).elapsed, milliseconds(60)) << "from its hand-out on";
}

TEST(Processes, InAsyncModeASuspectIsTriedAlone) {
  ProcessesHarness h;
  h.terms.async = true;
  EXPECT_EQ(h.processes.Idlest(8, 1), 0U);
  h.processes.Give(0, 10, 1, "work", h.now);
  EXPECT_FALSE(h.processes.Idlest(8, 0)) << "nothing beside it";
  h.processes.Answer(0, 1, h.now);
  h.processes.Give(0, 20, 0, "work", h.now);
  EXPECT_EQ(h.processes.Idlest(8, 0), 0U);
  EXPECT_FALSE(h.processes.Idlest(8, 1)) << "nor it beside another one";
}

TEST(Processes, WhatIsOverItsTimeEndsItsProcessAndIsToBlame) {
  ProcessesHarness h;
  h.Give(0);
  h.Actions();
  h.processes.Status(0, {1, Phase::kRun, h.now});
  h.now += h.terms.run_timeout + seconds(1);
  h.Check();
  EXPECT_THAT(h.Actions(), ElementsAre(Do::kKill));
  const Ended ended = h.processes.Exited(0, false, h.now);
  ASSERT_THAT(ended.orphans, SizeIs(1));
  EXPECT_EQ(ended.orphans[0].fault, Fault::kTimedOut);
  EXPECT_EQ(ended.killed_for.cause, job::Cause::kRunTimeout);
}

TEST(Processes, InAsyncModeTheOldestOverItsTimeIsToBlame) {
  ProcessesHarness h;
  h.terms.async = true;
  h.Give(0, 2);
  h.now += h.terms.run_timeout + seconds(1);
  h.Check();
  const Ended ended = h.processes.Exited(0, false, h.now);
  ASSERT_THAT(ended.orphans, SizeIs(2));
  EXPECT_EQ(ended.orphans[0].fault, Fault::kNone);
  EXPECT_EQ(ended.orphans[1].fault, Fault::kTimedOut);
}

TEST(Processes, ALeaseThatIsOverEndsTheProcessAndBlamesNobody) {
  ProcessesHarness h(2);
  h.Give(0);
  h.Give(1);
  h.Actions();
  h.processes.Check(h.now, kMuch, [](Key key, Instant) { return key == 10; });
  EXPECT_THAT(h.Actions(), ElementsAre(Do::kKill));
  EXPECT_EQ(h.processes.StateOf(0), ProcessState::kKilled);
  EXPECT_TRUE(h.processes.KilledAtWork());
  h.processes.Status(0, {1, Phase::kRun, h.now});
  const Ended ended = h.processes.Exited(0, false, h.now);
  ASSERT_THAT(ended.orphans, SizeIs(1));
  EXPECT_EQ(ended.orphans[0].fault, Fault::kNone);
  EXPECT_FALSE(h.processes.KilledAtWork());
}

TEST(Processes, ARefusedOneHasASecondToEndByItself) {
  for (const bool speculation : {true, false}) {
    ProcessesHarness h;
    h.terms.speculation = speculation;
    h.Give(0);
    h.processes.Status(0, {1, Phase::kRun, h.now});
    h.processes.Refused(0, 10, h.now);
    h.Check();
    EXPECT_EQ(h.processes.StateOf(0), speculation ? ProcessState::kReady : ProcessState::kKilled);
    h.now += seconds(1);
    h.Check();
    EXPECT_EQ(h.processes.StateOf(0), ProcessState::kKilled);
  }
}

TEST(Processes, WhoNeverBeginsIsCountedOnce) {
  ProcessesHarness h;
  h.Give(0);
  h.now += h.terms.overhead_timeout + seconds(1);
  EXPECT_EQ(h.Check().never_began, 1U);
  EXPECT_EQ(h.Check().never_began, 0U);
}

TEST(Processes, WhatWaitsBehindALongOneIsTakenBackOnceTheProcessKnows) {
  ProcessesHarness h;
  h.Give(0, 3);
  const Instant since = h.now;
  h.processes.Status(0, {1, Phase::kRun, since});
  h.now += kMuch;
  EXPECT_THAT(h.Check().taken_back, IsEmpty());
  h.Actions();
  h.now += milliseconds(1);
  EXPECT_THAT(h.Check().taken_back, IsEmpty()) << "it is told first";
  EXPECT_THAT(h.Actions(), ElementsAre(Do::kTakeBack));
  EXPECT_EQ(h.processes.late(), 1U);
  EXPECT_FALSE(h.processes.Idlest(8, 0)) << "nothing is put behind it";
  h.Check();
  EXPECT_THAT(h.Actions(), IsEmpty()) << "once";
  h.processes.Status(0, {1, Phase::kRun, since, 3});
  EXPECT_THAT(h.Check().taken_back, ElementsAre(30, 20)) << "the last one first";
  EXPECT_EQ(h.processes.given(), 1U);
}

TEST(Processes, OnlyWhatWasTakenBackMayBePassedOver) {
  ProcessesHarness h;
  h.Give(0, 2);
  std::optional<Key> key;
  EXPECT_FALSE(h.processes.PassedOver(0, 2, key));
  h.processes.Status(0, {1, Phase::kRun, h.now});
  h.now += seconds(2);
  h.Check();
  EXPECT_FALSE(h.processes.PassedOver(0, 2, key)) << "the first is not answered";
  h.processes.Answer(0, 1, h.now);
  EXPECT_TRUE(h.processes.PassedOver(0, 2, key));
  EXPECT_EQ(key, 20U);
  key.reset();
  EXPECT_TRUE(h.processes.PassedOver(0, 2, key)) << "it says it again";
  EXPECT_FALSE(key);
}

TEST(Processes, ADeathSaysWhatItLeavesTheLastFirst) {
  ProcessesHarness h;
  h.Give(0, 2);
  h.now += seconds(3);
  h.processes.Status(0, {1, Phase::kRun, h.now - seconds(2)});
  const Ended ended = h.processes.Exited(0, false, h.now);
  EXPECT_EQ(ended.state, ProcessState::kReady);
  EXPECT_FALSE(ended.idle);
  ASSERT_THAT(ended.orphans, SizeIs(2));
  EXPECT_EQ(ended.orphans[0].key, 20U);
  EXPECT_EQ(ended.orphans[0].fault, Fault::kNone);
  EXPECT_EQ(ended.orphans[1].fault, Fault::kItsOwn);
  EXPECT_TRUE(ended.orphans[1].at_work);
  EXPECT_EQ(ended.orphans[1].ran, seconds(2));
  EXPECT_EQ(ended.orphans[1].elapsed, seconds(3));
  EXPECT_EQ(h.processes.size(), 0U);
  EXPECT_EQ(h.processes.given(), 0U);
  EXPECT_EQ(h.processes.Exited(0, false, h.now).state, ProcessState::kGone);
}

TEST(Processes, ADeathInFrontIsCounted) {
  ProcessesHarness h;
  h.processes.Give(0, 10, 1, "work", h.now);
  const Ended ended = h.processes.Exited(0, false, h.now);
  ASSERT_THAT(ended.orphans, SizeIs(1));
  EXPECT_EQ(ended.orphans[0].fault, Fault::kBounced);
  EXPECT_EQ(ended.orphans[0].bounces, 2U);
}

TEST(Processes, WhoEndsWithoutAnAnswerAndEmptyWasIdle) {
  ProcessesHarness h(2);
  EXPECT_TRUE(h.processes.Exited(0, false, h.now).idle);
  h.Give(1);
  h.processes.Answer(1, 1, h.now);
  EXPECT_FALSE(h.processes.Exited(1, false, h.now).idle);
}

// Whether the one process that is killed is to leave its stack; nullopt: none is killed.
std::optional<bool> KilledWithStack(Processes& processes) {
  std::vector<WorkerAction> actions;
  processes.TakeActions(actions);
  for (const WorkerAction& action : actions) {
    if (action.kind == Do::kKill) return action.stack;
  }
  return std::nullopt;
}

TEST(Processes, WhatHungLeavesItsStackIfItsLeaseLastsForThat) {
  for (const bool lasts : {true, false}) {
    ProcessesHarness h;
    h.Give(0);
    h.processes.Status(0, {1, Phase::kRun, h.now});
    h.now += h.terms.run_timeout + seconds(1);
    const Instant end = h.now + kStackWait + (lasts ? milliseconds(1) : milliseconds(0));
    h.processes.Check(h.now, kMuch, [&](Key, Instant at) { return at >= end; });
    EXPECT_EQ(KilledWithStack(h.processes), lasts);
  }
  ProcessesHarness h;
  h.Give(0);
  h.processes.Status(0, {1, Phase::kRun, h.now});
  h.processes.Check(h.now, kMuch, [](Key, Instant) { return true; });
  EXPECT_EQ(KilledWithStack(h.processes), false) << "its lease is over: it ends at once";
}

TEST(Processes, AtTheEndWhoWasAtOneThingForLongLeavesItsStack) {
  for (const bool hung : {true, false}) {
    Registration terms;
    Processes processes(terms);
    processes.Start(0);
    const Instant since(seconds(100));
    processes.Status(0, {0, Phase::kInit, since});
    processes.EndAll(true, since + seconds(9), hung ? since + seconds(1) : since, since);
    EXPECT_EQ(KilledWithStack(processes), hung);
  }
  // Before it reads its first frame it does not know the signal.
  Registration terms;
  Processes processes(terms);
  processes.Start(0);
  processes.EndAll(true, Instant(seconds(9)), Instant(seconds(9)), Instant(seconds(9)));
  EXPECT_EQ(KilledWithStack(processes), false);
}

TEST(Processes, AtTheEndTheIdleAreAskedAndTheOthersKilled) {
  ProcessesHarness h(2);
  h.processes.Start(2);
  h.Give(0);
  h.Actions();
  const Instant stop_by = h.now + seconds(30);
  h.processes.EndAll(false, stop_by, Instant::min(), h.now);
  EXPECT_THAT(h.Actions(), ElementsAre(Do::kStop, Do::kKill));
  EXPECT_EQ(h.processes.NextDeadline(), stop_by);
  h.processes.EndAll(true, stop_by, Instant::min(), h.now);
  EXPECT_THAT(h.Actions(), ElementsAre(Do::kKill)) << "the one that works";
  h.now = stop_by;
  h.Check();
  EXPECT_THAT(h.Actions(), ElementsAre(Do::kKill)) << "shutdown() hangs";
  EXPECT_EQ(h.processes.NextDeadline(), kNever);
}

TEST(Processes, WhoSaysThatItCannotStartHasAWhileToEnd) {
  Registration terms;
  Processes processes(terms);
  const Instant now(seconds(100));
  processes.Start(0);
  processes.StartFailed(0, now);
  EXPECT_EQ(processes.NextDeadline(), now + seconds(5));
  EXPECT_EQ(processes.Exited(0, false, now).state, ProcessState::kStopping);
}

TEST(Processes, AllAreBusyWhenEachIs) {
  ProcessesHarness h(2);
  EXPECT_FALSE(h.processes.AllBusyFor(Duration(0), h.now));
  h.Give(0);
  h.now += seconds(3);
  EXPECT_FALSE(h.processes.AllBusyFor(seconds(2), h.now)) << "one is idle";
  h.Give(1);
  h.now += seconds(2);
  EXPECT_TRUE(h.processes.AllBusyFor(seconds(2), h.now));
  h.processes.Answer(0, 1, h.now);
  EXPECT_FALSE(h.processes.AllBusyFor(seconds(2), h.now));
}

TEST(Processes, WhatHasBegunIsWhatThePageNamesOrHasPassed) {
  ProcessesHarness h;
  h.Give(0, 3);
  h.processes.Status(0, {2, Phase::kLoading, h.now});
  EXPECT_THAT(h.processes.Begun(), ElementsAre(Pair(10, true), Pair(20, false), Pair(30, false)));
  h.processes.Status(0, {2, Phase::kRun, h.now});
  EXPECT_THAT(h.processes.Begun(), ElementsAre(Pair(10, true), Pair(20, true), Pair(30, false)));
  h.terms.async = true;
  EXPECT_THAT(h.processes.Begun(), ElementsAre(Pair(10, true), Pair(20, true), Pair(30, true)));
}

}  // namespace
}  // namespace parallelrun::agent
