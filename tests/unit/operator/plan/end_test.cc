// How jobs end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/operator/plan/world.h"

namespace parallelrun::operators {
namespace {

using nlohmann::json;
using testing::HasSubstr;

json EndOf(bool succeeded, int failed = 0) {
  json progress =
      PlanWorld::Progress(succeeded ? "Succeeded" : "Failed", 100 - failed, failed, 100);
  progress["verdict"] = {{"outcome", succeeded ? "Succeeded" : "Failed"},
                         {"reason", succeeded ? "" : "ErrorThresholdExceeded"},
                         {"message", succeeded ? "" : "11 items failed"}};
  if (succeeded) {
    progress["output"] = {{"path", "/mnt/out/o.txt"}, {"bytes", 5}, {"rows", 1}, {"sha256", "ab"}};
  }
  return progress;
}

TEST(OperatorPlanEnd, AVerdictThatWasPulledCompletesTheJob) {
  PlanWorld world;
  world.RunJob();
  world.now += seconds(1);
  world.Say(EndOf(true));
  world.Turn();
  EXPECT_EQ(world.Status().phase, "Succeeded");
  EXPECT_EQ(world.Reason("Complete"), "Completed");
  EXPECT_EQ(world.Status().output->rows, 1);
  EXPECT_EQ(world.Status().progress->percent, 100);
  EXPECT_FALSE(world.Pod("node-0-1").Live());
  EXPECT_TRUE(world.Status().completion_time);
  EXPECT_EQ(world.Told("Completed"), 1);
  // Nothing is ever made again, and the verdict stays.
  world.Reap();
  world.done.clear();
  world.End(world.Pod("coordinator-1"), 0);
  for (int i = 0; i < 3; ++i) world.TurnIn(seconds(100));
  EXPECT_EQ(world.Did(Action::Kind::kCreate), 0);
  EXPECT_EQ(world.Told("Completed"), 1);
  EXPECT_TRUE(world.Has("coordinator-1")) << "its log stays";
}

bool HasBudget(const PlanWorld& world) {
  return std::any_of(world.there.begin(), world.there.end(),
                     [](const auto& one) { return one.first.kind == FactKind::kDisruptionBudget; });
}

// Whoever watches budgets is alarmed by one whose pod is gone.
TEST(OperatorPlanEnd, ABudgetIsThereWhileTheJobHasACoordinator) {
  for (const bool succeeds : {true, false}) {
    PlanWorld world;
    world.spec()["disruption"] = "Budget";
    world.RunJob();
    EXPECT_TRUE(HasBudget(world));
    world.Edit("suspend", true);
    for (int i = 0; i < 3; ++i) {
      world.TurnIn(seconds(1));
      world.Reap();
    }
    EXPECT_TRUE(world.Status().Is("Suspended"));
    EXPECT_FALSE(HasBudget(world));
    world.Edit("suspend", false);
    world.TurnIn(seconds(1));
    world.StartAll();
    world.TurnIn(seconds(60));  // what it knows of the budget is that old
    EXPECT_TRUE(HasBudget(world));
    world.Say(EndOf(succeeds));
    world.TurnIn(seconds(1));
    world.Reap();
    for (auto& [name, pod] : world.pods) {
      if (pod.Live()) world.End(pod, succeeds ? 0 : 1);
    }
    for (int i = 0; i < 3; ++i) {
      world.TurnIn(seconds(100));
      world.Reap();
    }
    EXPECT_TRUE(world.Status().Over());
    EXPECT_FALSE(HasBudget(world));
  }
  PlanWorld without;
  without.spec()["disruption"] = "Avoid";
  without.RunJob();
  EXPECT_FALSE(HasBudget(without));
}

TEST(OperatorPlanEnd, WithoutTheRightToABudgetTheJobRunsAndSaysSo) {
  PlanWorld world;
  world.spec()["disruption"] = "Budget";
  world.RunJob();
  Fact refused;
  refused.state = Fact::State::kUnreadable;
  refused.error = "poddisruptionbudgets.policy is forbidden";
  for (auto& [key, fact] : world.there) {
    if (key.kind == FactKind::kDisruptionBudget) fact = refused;
  }
  world.TurnIn(seconds(700));
  EXPECT_EQ(world.Live(), 3);
  EXPECT_EQ(world.Reason("NodesReady"), "Forbidden");
  EXPECT_THAT(world.Message("NodesReady"), HasSubstr("jobs.disruptionBudgets"));
  EXPECT_FALSE(world.Status().Is("Stalled"));
}

// One condition for every end: kubectl wait takes one only.
TEST(OperatorPlanEnd, EveryEndIsFinished) {
  for (const bool succeeds : {true, false}) {
    PlanWorld world;
    world.RunJob();
    EXPECT_EQ(world.Reason("Finished"), "NotFinished");
    world.Say(EndOf(succeeds));
    world.Turn();
    world.Reap();
    world.TurnIn(seconds(100));
    world.Reap();
    world.TurnIn(seconds(100));
    const char* const end = succeeds ? "Complete" : "Failed";
    ASSERT_TRUE(world.Status().Is(end));
    EXPECT_TRUE(world.Status().Is("Finished"));
    EXPECT_EQ(world.Reason("Finished"), world.Reason(end));
    EXPECT_EQ(world.Message("Finished"), world.Message(end));
    // A job that ended under an operator that knew no such condition gets it too.
    for (json& condition : world.object["status"]["conditions"]) {
      if (condition["type"] == "Finished") condition["status"] = "False";
    }
    world.Turn();
    EXPECT_TRUE(world.Status().Is("Finished"));
  }
}

TEST(OperatorPlanEnd, WhatCannotBeReadIsFinishedUntilItIsMended) {
  PlanWorld world;
  world.spec()["outputs"] = 1;
  world.Turn();
  EXPECT_TRUE(world.Status().Is("Finished"));
  EXPECT_EQ(world.Reason("Finished"), "Invalid");
  world.spec().erase("outputs");
  world.Turn();
  EXPECT_FALSE(world.Status().Is("Finished"));
  EXPECT_EQ(world.Reason("Finished"), "NotFinished");
}

// With 0, for its pod to be Completed; its words say that the job is not over.
TEST(OperatorPlanEnd, ACoordinatorThatWasToldToGoHasSucceededWithNothing) {
  const std::string running = json{{"progress", PlanWorld::Progress("Running", 3, 0, 10)},
                                   {"ended", "ended by a signal: the next epoch goes on"}}
                                  .dump();
  for (const std::string& words : {running, std::string(), std::string("cut o")}) {
    SCOPED_TRACE(words);
    PlanWorld world;
    world.RunJob();
    world.End(world.Pod("coordinator-1"), 0, "", words);
    world.Turn();
    EXPECT_FALSE(world.Status().Is("Complete"));
    EXPECT_TRUE(world.Has("coordinator-2")) << "at once";
    world.Turn();
    EXPECT_EQ(world.Status().coordinator.fruitless, words.empty() ? 1 : 0);
  }
}

// As a second operator has it that was late.
TEST(OperatorPlanEnd, AnOldReportTakesNothingBack) {
  PlanWorld world;
  world.RunJob();
  world.Say(EndOf(true));
  world.Turn();
  world.Say(PlanWorld::Progress("Running", 96, 0, 100));
  world.TurnIn(seconds(60));
  EXPECT_EQ(world.Status().progress->percent, 100);
}

TEST(OperatorPlanEnd, FailuresWithinTheThresholdsAreNamed) {
  PlanWorld world;
  world.RunJob();
  world.Say(EndOf(true, 3));
  world.TurnIn(seconds(1));
  EXPECT_EQ(world.Reason("Complete"), "CompletedWithFailures");
  EXPECT_THAT(world.Message("Complete"), HasSubstr("3 of 100"));
  EXPECT_EQ(world.Status().display.failed, "30");
}

// As with isolateFailures, where every mini-batch succeeds and items are lost.
TEST(OperatorPlanEnd, LostItemsAreFailuresAlsoWhereNoMiniBatchFailed) {
  json progress = EndOf(true);
  progress["verdict"]["reason"] = "CompletedWithFailures";
  progress["verdict"]["message"] = "10 of 1000 items have no row";
  progress["items"]["failed"] = 10;
  for (const bool last_words : {false, true}) {
    SCOPED_TRACE(last_words);
    PlanWorld world;
    world.RunJob();
    if (last_words) {
      world.End(world.Pod("coordinator-1"), 0, "", json{{"progress", progress}}.dump());
    } else {
      world.Say(progress);
    }
    world.TurnIn(seconds(1));
    EXPECT_TRUE(world.Status().Is("Complete"));
    EXPECT_EQ(world.Reason("Complete"), "CompletedWithFailures");
    EXPECT_EQ(world.Message("Complete"), "10 of 1000 items have no row");
    EXPECT_EQ(world.Status().display.failed, "10");
    EXPECT_EQ(world.Told("CompletedWithFailures"), 1);
    EXPECT_TRUE(world.events.back().warning);
  }
}

// All rows are there, but what a shutdown() was to do may be missing: the word of the local run.
TEST(OperatorPlanEnd, ASuccessWhoseShutdownFailedSaysSo) {
  json progress = EndOf(true);
  progress["verdict"]["reason"] = "ShutdownFailed";
  progress["verdict"]["message"] = "all rows are there, but shutdown() did not end well";
  for (const bool last_words : {false, true}) {
    SCOPED_TRACE(last_words);
    PlanWorld world;
    world.RunJob();
    if (last_words) {
      world.End(world.Pod("coordinator-1"), 0, "", json{{"progress", progress}}.dump());
    } else {
      world.Say(progress);
    }
    world.TurnIn(seconds(1));
    EXPECT_TRUE(world.Status().Is("Complete"));
    EXPECT_EQ(world.Reason("Complete"), "ShutdownFailed");
    EXPECT_EQ(world.Reason("Finished"), "ShutdownFailed");
    EXPECT_THAT(world.Message("Complete"), HasSubstr("shutdown() did not end well"));
    EXPECT_EQ(world.Told("ShutdownFailed"), 1);
    EXPECT_TRUE(world.events.back().warning);
    EXPECT_EQ(world.Told("Completed"), 0);
    // Nothing is wrong with the job itself.
    EXPECT_FALSE(world.Status().Is("Stalled"));
    EXPECT_FALSE(world.Status().Is("Failed"));
  }
}

// A word that this operator does not know is no warning.
TEST(OperatorPlanEnd, AnotherWordOfSuccessIsCompleted) {
  json progress = EndOf(true);
  progress["verdict"]["reason"] = "SomethingNew";
  PlanWorld world;
  world.RunJob();
  world.Say(progress);
  world.TurnIn(seconds(1));
  EXPECT_EQ(world.Reason("Complete"), "Completed");
  EXPECT_EQ(world.Told("Completed"), 1);
  EXPECT_FALSE(world.events.back().warning);
}

TEST(OperatorPlanEnd, LastWordsAreEnoughWhenNothingCouldBePulled) {
  PlanWorld world;
  world.Turn();
  world.StartAll();
  world.End(world.Pod("coordinator-1"), 0, "", json{{"progress", EndOf(true)}}.dump());
  world.TurnIn(seconds(1));
  EXPECT_TRUE(world.Status().Is("Complete"));
  EXPECT_EQ(world.Status().output->path, "/mnt/out/o.txt");
}

TEST(OperatorPlanEnd, AFailedJobEndsInTwoSteps) {
  PlanWorld world;
  world.RunJob();
  // restartPolicy OnFailure: the kubelet has started it again already.
  PodDigest& pod = world.Pod("coordinator-1");
  pod.main.restarts = 1;
  pod.main.ended = {1, "Error", json{{"progress", EndOf(false)}}.dump(), {}, {}};
  world.TurnIn(seconds(1));
  EXPECT_TRUE(world.Status().Is("FailureTarget"));
  EXPECT_FALSE(world.Status().Is("Failed"));
  EXPECT_EQ(world.Status().phase, "Finalizing");
  EXPECT_EQ(world.Live(), 0);
  world.Reap();
  world.TurnIn(seconds(1));
  EXPECT_TRUE(world.Status().Is("Failed"));
  EXPECT_EQ(world.Reason("Failed"), "ErrorThresholdExceeded");
  // The cause stands in one of the two events.
  std::string told;
  for (const EventToEmit& event : world.events) told += event.reason + ": " + event.message + "\n";
  EXPECT_THAT(told, HasSubstr("Failing: ErrorThresholdExceeded: its pods end\n"));
  EXPECT_THAT(told, HasSubstr("Failed: ErrorThresholdExceeded: 11 items failed\n"));
  EXPECT_EQ(world.Status().failure->message, "11 items failed");
  EXPECT_TRUE(world.Status().Is("Stalled"));
}

TEST(OperatorPlanEnd, ADeadMachineDoesNotHoldUpTheEnd) {
  PlanWorld world;
  world.RunJob();
  world.Say(EndOf(false));
  world.TurnIn(seconds(1));
  world.TurnIn(seconds(60));
  EXPECT_FALSE(world.Status().Is("Failed"));
  world.TurnIn(seconds(31));
  EXPECT_TRUE(world.Status().Is("Failed"));
}

TEST(OperatorPlanEnd, ACoordinatorThatCannotStartFailsTheJobWithItsMessage) {
  PlanWorld world;
  world.Turn();
  PodDigest& pod = world.Pod("coordinator-1");
  pod.main.ended = {2, "Error", R"({"error": "cannot write /mnt/out: Permission denied"})", {}, {}};
  pod.main.waiting_reason = "CrashLoopBackOff";
  world.TurnIn(seconds(1));
  EXPECT_EQ(world.Reason("FailureTarget"), "CoordinatorCannotStart");
  EXPECT_THAT(world.Message("FailureTarget"), HasSubstr("Permission denied"));
}

TEST(OperatorPlanEnd, ARestartAfterTheLastWordsIsNotToldBesideThem) {
  const auto told = [](int exit_code) {
    PlanWorld world;
    world.RunJob();
    PodDigest& pod = world.Pod("coordinator-1");
    pod.main.ended = {exit_code, "Error", R"({"error": "cannot write /mnt/out"})", {}, {}};
    pod.main.restarts = 1;
    world.TurnIn(seconds(1));
    EXPECT_EQ(world.Status().Is("FailureTarget"), exit_code == 2);
    return world.Told("CoordinatorRestarted");
  };
  EXPECT_EQ(told(2), 0);
  EXPECT_EQ(told(5), 1);
}

TEST(OperatorPlanEnd, CancelStopsARunningJobThroughItsCoordinator) {
  PlanWorld world;
  world.RunJob();
  world.Edit("cancel", true);
  world.Turn();
  EXPECT_EQ(world.Reason("FailureTarget"), "Canceled");
  world.Turn();
  EXPECT_EQ(world.view.acknowledged->value("cancel", false), true);
  EXPECT_TRUE(world.Pod("coordinator-1").Live()) << "it closes the ledger and uploads logs";
  world.End(world.Pod("coordinator-1"), 1, "", json{{"progress", EndOf(false)}}.dump());
  world.Reap();
  world.TurnIn(seconds(1));
  EXPECT_EQ(world.Reason("Failed"), "Canceled");
}

TEST(OperatorPlanEnd, CancelOfAJobWhoseCoordinatorIsDeafEndsToo) {
  PlanWorld world;
  world.RunJob();
  world.coordinator_listens = false;
  world.Edit("cancel", true);
  world.Turn();
  world.TurnIn(seconds(61));
  EXPECT_FALSE(world.Pod("coordinator-1").Live());
  world.Reap();
  world.TurnIn(seconds(1));
  EXPECT_EQ(world.Reason("Failed"), "Canceled");
}

TEST(OperatorPlanEnd, CancelBeforeTheStartFailsAtOnce) {
  PlanWorld world;
  world.spec()["cancel"] = true;
  world.Turn();
  EXPECT_EQ(world.Reason("Failed"), "Canceled");
  EXPECT_EQ(world.Did(Action::Kind::kCreate), 0);
}

TEST(OperatorPlanEnd, AVerdictOfSuccessWinsOverALateCancel) {
  PlanWorld world;
  world.RunJob();
  world.Edit("cancel", true);
  world.Turn();
  world.Say(EndOf(true));
  world.TurnIn(seconds(1));
  EXPECT_TRUE(world.Status().Is("Complete"));
  EXPECT_FALSE(world.Status().Is("FailureTarget"));
}

TEST(OperatorPlanEnd, TheActiveDeadlineFailsTheJob) {
  PlanWorld world;
  world.spec()["activeDeadlineSeconds"] = 100;
  world.RunJob();
  const Plan plan = world.TurnIn(seconds(1));
  EXPECT_LE(*plan.wake, *world.Status().start_time + seconds(100));
  world.TurnIn(seconds(100));
  EXPECT_EQ(world.Reason("FailureTarget"), "DeadlineExceeded");
}

TEST(OperatorPlanEnd, TheStartupDeadlineTellsWhyNothingStarted) {
  PlanWorld world;
  world.spec()["startupDeadlineSeconds"] = 30;
  world.Turn();
  world.Pod("node-0-1").main.waiting_reason = "ImagePullBackOff";
  world.Pod("node-0-1").main.waiting_message = "not found";
  world.TurnIn(seconds(10));
  world.TurnIn(seconds(20));
  EXPECT_EQ(world.Reason("FailureTarget"), "StartupDeadlineExceeded");
  EXPECT_THAT(world.Message("FailureTarget"), HasSubstr("ImagePullBackOff"));
  PlanWorld ready;
  ready.spec()["startupDeadlineSeconds"] = 30;
  ready.RunJob();
  ready.TurnIn(seconds(60));
  EXPECT_FALSE(ready.Status().Is("FailureTarget"));
}

// docs/logs.md says so: whose log can be read afterwards is no matter of the way the job ended.
TEST(OperatorPlanEnd, ANodeThatHasEndedStaysAndOneThatStillRunsIsDeleted) {
  PlanWorld succeeds;
  succeeds.RunJob();
  succeeds.Say(PlanWorld::Progress("Finalizing", 100, 0, 100));
  succeeds.End(succeeds.Pod("node-0-1"), 0);
  succeeds.TurnIn(seconds(1));
  EXPECT_FALSE(succeeds.Pod("node-0-1").deletion);
  EXPECT_TRUE(succeeds.Pod("node-1-1").deletion);
  succeeds.Reap();
  succeeds.Say(EndOf(true));
  succeeds.TurnIn(seconds(1));
  ASSERT_TRUE(succeeds.Status().Is("Complete"));
  succeeds.End(succeeds.Pod("coordinator-1"), 0);
  for (int i = 0; i < 3; ++i) succeeds.TurnIn(seconds(100));
  EXPECT_TRUE(succeeds.Has("node-0-1"));
  EXPECT_TRUE(succeeds.Has("coordinator-1"));
  EXPECT_FALSE(succeeds.Has("node-1-1"));

  PlanWorld fails;
  fails.RunJob();
  fails.End(fails.Pod("node-0-1"), 1);
  fails.Say(EndOf(false));
  fails.TurnIn(seconds(1));
  EXPECT_FALSE(fails.Pod("node-0-1").deletion);
  EXPECT_TRUE(fails.Pod("node-1-1").deletion);
  fails.Reap();
  for (int i = 0; i < 3; ++i) fails.TurnIn(seconds(100));
  ASSERT_TRUE(fails.Status().Is("Failed"));
  EXPECT_TRUE(fails.Has("node-0-1"));
  EXPECT_FALSE(fails.Has("node-1-1"));
}

TEST(OperatorPlanEnd, NodesGoAtFinalizingAndSuspendIsIgnored) {
  PlanWorld world;
  world.RunJob();
  world.now += seconds(1);
  world.Say(PlanWorld::Progress("Finalizing", 100, 0, 100));
  world.Edit("suspend", true);
  world.Turn();
  EXPECT_EQ(world.Status().phase, "Finalizing");
  EXPECT_FALSE(world.Pod("node-0-1").Live());
  EXPECT_TRUE(world.Pod("coordinator-1").Live());
  // The coordinator dies while it publishes: it comes back, the nodes do not.
  world.Reap();
  world.Pod("coordinator-1").deletion = world.now + seconds(30);
  world.view = {};
  world.TurnIn(seconds(15));
  EXPECT_TRUE(world.Has("coordinator-2"));
  EXPECT_EQ(world.Live(), 1);
}

TEST(OperatorPlanEnd, TtlDeletesPodsAndOnlyOnDemandTheJob) {
  PlanWorld world;
  world.spec()["ttlSecondsAfterFinished"] = 100;
  world.RunJob();
  world.Say(EndOf(true));
  world.Turn();
  world.Reap();
  world.End(world.Pod("coordinator-1"), 0);
  world.TurnIn(seconds(99));
  EXPECT_TRUE(world.Has("coordinator-1"));
  EXPECT_TRUE(world.there.contains({FactKind::kSecret, AccessSecretName(world.job())}));
  world.TurnIn(seconds(1));
  EXPECT_TRUE(world.pods.empty());
  world.TurnIn(seconds(1));
  EXPECT_EQ(world.Children(), 0) << "Secret, Service and copy of the code go after the pods";
  EXPECT_TRUE(world.there.contains({FactKind::kConfigMap, "digits-code"})) << "the user's";
  world.TurnIn(seconds(2));
  EXPECT_TRUE(world.Status().cleanup_time);
  EXPECT_EQ(world.Did(Action::Kind::kDelete, "parallelrunjobs"), 0);
  EXPECT_TRUE(world.Turn().needs.empty()) << "an operator that starts does not look again";
}

TEST(OperatorPlanEnd, WhatIsNotTheJobsStaysAfterItsTtl) {
  PlanWorld world;
  world.spec()["ttlSecondsAfterFinished"] = 100;
  world.RunJob();
  world.Say(EndOf(true));
  world.Turn();
  world.Reap();
  world.End(world.Pod("coordinator-1"), 0);
  world.there[{FactKind::kService, ServiceName(world.job())}].owner_uid = "another";
  world.TurnIn(seconds(100));
  world.TurnIn(seconds(1));
  world.TurnIn(seconds(2));
  EXPECT_EQ(world.Did(Action::Kind::kDelete, "services"), 0);
  EXPECT_TRUE(world.Status().cleanup_time);
}

TEST(OperatorPlanEnd, TtlDeletesTheJobOnDemand) {
  PlanWorld world;
  world.spec()["ttlSecondsAfterFinished"] = 100;
  world.spec()["deleteAfterFinished"] = true;
  world.RunJob();
  world.Say(EndOf(true));
  world.Turn();
  world.TurnIn(seconds(100));
  EXPECT_EQ(world.Did(Action::Kind::kDelete, "parallelrunjobs"), 1);
  EXPECT_EQ(world.Did(Action::Kind::kDelete, "secrets"), 0) << "the garbage collector's";
}

TEST(OperatorPlanEnd, AJobThatCannotBeReadAnyMoreStillEnds) {
  PlanWorld world;
  world.RunJob();
  world.spec()["fromTheFuture"] = true;
  world.TurnIn(seconds(1));
  EXPECT_EQ(world.Reason("Accepted"), "Invalid");
  EXPECT_EQ(world.Live(), 3) << "nothing is deleted because of a field that is not known";
  world.Say(EndOf(true));
  world.TurnIn(seconds(1));
  EXPECT_TRUE(world.Status().Is("Complete"));
}

TEST(OperatorPlanEnd, AStateThatNobodyCanReadFailsNothing) {
  PlanWorld world;
  world.RunJob();
  world.Pod("coordinator-1").main.ended = {137, "OOMKilled", "\xff garbage", {}, {}};
  world.Pod("coordinator-1").main.restarts = 1;
  world.TurnIn(seconds(1));
  EXPECT_FALSE(world.Status().Is("FailureTarget"));
  EXPECT_EQ(world.Status().coordinator.restarts, 1);
  EXPECT_EQ(world.Told("CoordinatorRestarted"), 1);
}

TEST(OperatorPlanEnd, AnOutputThatCannotBePublishedFailsTheJobAndSaysWhy) {
  PlanWorld world;
  world.spec()["coordinator"]["restartLimit"] = 2;
  world.RunJob();
  world.now += seconds(1);
  const json finalizing = PlanWorld::Progress("Finalizing", 100, 0, 100);
  world.Say(finalizing);
  world.Turn();
  PodDigest& pod = world.Pod("coordinator-1");
  const auto fail = [&] {
    const json words = {{"progress", finalizing},
                        {"ended", "open /mnt/out/.part: Permission denied"}};
    pod.main.ended = {5, "Error", words.dump(), {}, {}};
    ++pod.main.restarts;
    world.TurnIn(seconds(1));
  };
  for (int i = 0; i < 2; ++i) fail();
  EXPECT_EQ(world.Status().coordinator.fruitless, 2);
  EXPECT_EQ(world.Status().nodes.restarts, 0);
  EXPECT_FALSE(world.Status().Is("FailureTarget"));
  fail();
  EXPECT_EQ(world.Reason("FailureTarget"), "CoordinatorRestartLimitExceeded");
  EXPECT_THAT(world.Message("FailureTarget"), HasSubstr("out/.part: Permission denied"));
  EXPECT_THAT(world.Message("FailureTarget"), HasSubstr("output.ifExists: Resume"));

  // The folder was mended just then.
  PlanWorld mended = world;
  mended.Say(EndOf(true));
  mended.TurnIn(seconds(1));
  EXPECT_TRUE(mended.Status().Is("Complete"));
  EXPECT_FALSE(mended.Status().Is("FailureTarget"));

  world.TurnIn(seconds(61));
  world.Reap();
  world.TurnIn(seconds(1));
  EXPECT_EQ(world.Reason("Failed"), "CoordinatorRestartLimitExceeded");
}

TEST(OperatorPlanEnd, NodesThatFailAfterTheLastMiniBatchDoNotCount) {
  PlanWorld world;
  world.spec()["nodeRestartLimit"] = 0;
  world.RunJob();
  world.now += seconds(1);
  world.Say(PlanWorld::Progress("Finalizing", 100, 0, 100));
  world.End(world.Pod("node-0-1"), 1);
  world.Turn();
  EXPECT_EQ(world.Status().nodes.restarts, 0);
  EXPECT_FALSE(world.Status().Is("FailureTarget"));
}

TEST(OperatorPlanEnd, NoDeadlineEndsAJobThatPublishes) {
  PlanWorld world;
  world.spec()["activeDeadlineSeconds"] = 100;
  world.RunJob();
  world.now += seconds(90);
  world.Say(PlanWorld::Progress("Finalizing", 100, 0, 100));
  world.Turn();
  world.TurnIn(seconds(200));
  EXPECT_FALSE(world.Status().Is("FailureTarget"));
  // Its coordinator dies, and the next one has not said a word yet.
  world.Reap();
  world.Pod("coordinator-1").deletion = world.now + seconds(30);
  world.view = {};
  world.TurnIn(seconds(1));
  EXPECT_FALSE(world.Status().Is("FailureTarget"));
  world.Say(EndOf(true));
  world.TurnIn(seconds(1));
  EXPECT_TRUE(world.Status().Is("Complete"));
}

}  // namespace
}  // namespace parallelrun::operators
