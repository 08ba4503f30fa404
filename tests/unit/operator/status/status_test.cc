// The status: its shape, what is shown, and when it is written.
#include "operator/status/status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/report.h"
#include "tests/unit/operator/plan/world.h"

namespace parallelrun::operators {
namespace {

using nlohmann::json;
using testing::ElementsAre;

TEST(OperatorStatus, WhatIsWrittenIsReadBack) {
  PlanWorld world;
  world.RunJob();
  world.End(world.Pod("node-0-1"), 1);
  json progress = PlanWorld::Progress("Running", 10, 2, 100);
  progress["errors"] = json::parse(
      R"([{"kind": "ValueError", "message": "bad", "count": 3, "miniBatch": 7, "node": 1,
           "process": "process001", "log": "user/error/1/process001.txt"}])");
  world.TurnIn(seconds(11));
  world.Say(progress);
  world.TurnIn(seconds(11));
  const JobStatus status = world.Status();
  ASSERT_TRUE(status.failure);
  EXPECT_EQ(status.failure->errors[0].kind, "ValueError");
  EXPECT_THAT(status.counted, ElementsAre("0-1"));
  EXPECT_EQ(ParseStatus(ToJson(status)), status);
  EXPECT_EQ(ToJson(status), world.object["status"]);
}

TEST(OperatorStatus, OnlyIntegersAndTextAreWritten) {
  PlanWorld world;
  world.RunJob();
  const json flat = world.object["status"].flatten();
  for (const auto& [key, value] : flat.items()) {
    EXPECT_FALSE(value.is_number_float()) << key;
    EXPECT_FALSE(value.is_null() && key.find("counted") == std::string::npos) << key;
  }
}

TEST(OperatorStatus, TheFirstWriteComesAfterThePods) {
  PlanWorld world;
  EXPECT_FALSE(world.Turn(false).write_status) << "the code was copied: it goes on at once";
  EXPECT_EQ(world.Did(Action::Kind::kSnapshotCode), 1);
  EXPECT_TRUE(world.Turn(false).write_status);
  EXPECT_EQ(world.Status().phase, "Starting");
  EXPECT_EQ(world.Told("Started"), 1);
  PlanWorld waits;
  waits.there.erase({FactKind::kConfigMap, "digits-code"});
  EXPECT_FALSE(waits.Turn(false).write_status) << "that it is not there shows when it is copied";
  EXPECT_TRUE(waits.Turn(false).write_status) << "nothing can be done";
}

TEST(OperatorStatus, CountsOfPodsThatStartOneByOneAreWrittenTogether) {
  PlanWorld world;
  world.spec()["nodeCount"] = 4;
  world.Turn();
  world.Start(world.Pod("coordinator-1"));
  world.Start(world.Pod("node-0-1"));
  EXPECT_TRUE(world.TurnIn(seconds(3)).write_status) << "the first node got ready";
  world.Start(world.Pod("node-1-1"));
  const Plan later = world.Turn();
  EXPECT_FALSE(later.write_status);
  ASSERT_TRUE(later.wake);
  EXPECT_EQ(*later.wake, world.now + seconds(2));
  world.Start(world.Pod("node-2-1"));
  EXPECT_FALSE(world.TurnIn(seconds(1)).write_status);
  EXPECT_TRUE(world.TurnIn(seconds(1)).write_status);
  EXPECT_EQ(world.Status().nodes.ready, 3);
  world.Start(world.Pod("node-3-1"));
  EXPECT_TRUE(world.Turn().write_status) << "all of them are ready: that is not a mere count";
}

TEST(OperatorStatus, NonsenseIsReadAsNothing) {
  EXPECT_EQ(ParseStatus(json("text")), JobStatus());
  const JobStatus status = ParseStatus(json::parse(
      R"({"conditions": [5, {"type": "Complete"}], "nodes": "x", "startTime": "yesterday"})"));
  EXPECT_FALSE(status.Over());
  EXPECT_FALSE(status.start_time);
}

TEST(OperatorStatus, TransitionTimesMoveOnlyWithTheStatus) {
  JobStatus status;
  SetCondition(status, "Failed", Truth::kFalse, "Pending", "", 1, WallTime(seconds(10)));
  SetCondition(status, "Failed", Truth::kFalse, "Other", "", 2, WallTime(seconds(20)));
  EXPECT_EQ(status.Find("Failed")->since, WallTime(seconds(10)));
  EXPECT_EQ(status.Find("Failed")->reason, "Other");
  SetCondition(status, "Failed", Truth::kTrue, "Other", std::string(5000, 'x'), 2,
               WallTime(seconds(30)));
  EXPECT_EQ(status.Find("Failed")->since, WallTime(seconds(30)));
  EXPECT_EQ(status.Find("Failed")->message.size(), kMaxMessage);
}

TEST(OperatorStatus, TextIsCutBetweenCharacters) {
  EXPECT_EQ(Shortened("abc", 3), "abc");
  EXPECT_EQ(Shortened("abcdef", 5), "ab...");
  EXPECT_EQ(Shortened("a\xC3\xA4\xC3\xA4", 4), "a...");
}

TEST(OperatorStatus, TimesAreReadStrictly) {
  EXPECT_EQ(Rfc3339(*ParseRfc3339("2026-11-21T09:00:00Z")), "2026-11-21T09:00:00Z");
  EXPECT_EQ(*ParseRfc3339("1970-01-01T00:00:01.25Z"), WallTime(milliseconds(1250)));
  for (const char* text : {"", "2026-11-21", "2026-11-21T09:00:00+01:00", "2026-11-21T09:00:00.xZ",
                           "2026-11-21 09:00:00Z", "2026-1a-21T09:00:00Z"}) {
    EXPECT_FALSE(ParseRfc3339(text)) << text;
  }
}

TEST(OperatorStatus, ProgressAloneIsWrittenEveryTenSecondsAndOnAPercent) {
  PlanWorld world;
  world.RunJob();
  world.now += seconds(1);
  world.Say(PlanWorld::Progress("Running", 2, 0, 100));
  Plan plan = world.Turn();
  EXPECT_FALSE(plan.write_status) << "too soon";
  ASSERT_TRUE(plan.wake);
  plan = world.TurnIn(seconds(10));
  EXPECT_TRUE(plan.write_status);
  EXPECT_EQ(world.Status().progress->percent, 2);
  world.Say(PlanWorld::Progress("Running", 2, 0, 100));
  plan = world.TurnIn(seconds(60));
  EXPECT_FALSE(plan.write_status) << "nothing new";
  world.Say(PlanWorld::Progress("Running", 1000, 0, 100000));
  world.TurnIn(seconds(60));
  world.Say(PlanWorld::Progress("Running", 1001, 0, 100000));
  EXPECT_FALSE(world.TurnIn(seconds(60)).write_status) << "less than 1 %";
}

TEST(OperatorStatus, TheColumnsAreText) {
  PlanWorld world;
  world.RunJob();
  world.now += seconds(20);
  world.Say(PlanWorld::Progress("Running", 60, 1, 180));
  world.Turn();
  const DisplayStatus display = world.Status().display;
  EXPECT_EQ(display.status, "Running");
  EXPECT_EQ(display.done, "33% (61/180)");
  EXPECT_EQ(display.failed, "10");  // items
  EXPECT_EQ(display.nodes, "2/2");
  EXPECT_EQ(display.eta, "1m00s");
}

// What is left was counted from the last word of a coordinator that had been gone for a minute.
TEST(OperatorStatus, NoEndIsForetoldWithoutProgress) {
  const auto foretold = [](const PlanWorld& world) {
    const JobStatus status = world.Status();
    EXPECT_EQ(status.progress->estimated_completion.has_value(), !status.display.eta.empty());
    return status.display.eta;
  };
  // Something else is told each time: an estimate alone is no write.
  const auto say = [](PlanWorld& world, const std::string& warning) {
    json progress = PlanWorld::Progress("Running", 2, 0, 100);
    progress["lateWarning"] = warning;
    world.Say(progress);
  };
  PlanWorld world;
  world.RunJob();
  say(world, "one");
  world.TurnIn(seconds(10));
  EXPECT_EQ(foretold(world), "1m00s") << "it is asked now and then";
  say(world, "two");
  world.TurnIn(milliseconds(10'001));
  EXPECT_EQ(foretold(world), "");
  EXPECT_EQ(world.Status().progress->succeeded, 2) << "what was done stays";
  say(world, "three");
  world.Turn();
  EXPECT_EQ(foretold(world), "1m00s");

  PlanWorld suspended = world;
  suspended.Edit("suspend", true);
  suspended.Turn();
  EXPECT_EQ(suspended.Status().phase, "Suspended");
  EXPECT_EQ(foretold(suspended), "");

  PlanWorld canceled = world;
  canceled.Edit("cancel", true);
  canceled.Turn();
  EXPECT_TRUE(canceled.Status().Is("FailureTarget"));
  EXPECT_EQ(foretold(canceled), "");

  PlanWorld lost = world;
  lost.Pod("coordinator-1").deletion = lost.now;
  lost.Turn();
  EXPECT_EQ(lost.Status().phase, "Running");
  EXPECT_EQ(foretold(lost), "") << "its successor has not answered yet";
}

TEST(OperatorStatus, TheStatusColumnSaysWhatAllOfTheJobWaitsFor) {
  PlanWorld world;
  world.RunJob();
  world.Pod("node-1-1").ready = false;
  world.Pod("node-1-1").main.waiting_reason = "CreateContainerConfigError";
  world.TurnIn(seconds(1));
  EXPECT_EQ(world.Reason("NodesReady"), "CreateContainerConfigError");
  EXPECT_EQ(world.Status().display.status, "Running") << "the other node works";
  EXPECT_EQ(world.Status().display.nodes, "1/2");
  json paused = PlanWorld::Progress("Running", 1, 0, 100);
  paused["paused"] = "No space left on device";
  world.Start(world.Pod("node-1-1"));
  world.Say(paused);
  world.TurnIn(seconds(1));
  EXPECT_EQ(world.Status().display.status, "CoordinatorPaused");
  EXPECT_EQ(world.Status().phase, "Running");
  world.Say(PlanWorld::Progress("Running", 1, 0, 100));
  world.Pod("coordinator-1").ready = false;
  world.Pod("coordinator-1").main.waiting_reason = "CrashLoopBackOff";
  world.TurnIn(seconds(1));
  EXPECT_EQ(world.Status().display.status, "CrashLoopBackOff");
}

TEST(OperatorStatus, WhatNodesFetchBeforeTheyAreReadyIsTold) {
  PlanWorld world;
  world.RunJob();
  world.Pod("node-1-1").ready = false;
  json progress = PlanWorld::Progress("Running", 1, 0, 100);
  progress["fetching"] = "node 1: fetching side input model, 1.2 of 4.0 GB";
  world.Say(progress);
  world.TurnIn(seconds(1));
  EXPECT_EQ(world.Message("NodesReady"),
            "1 of 2 nodes are ready; node 1: fetching side input model, 1.2 of 4.0 GB");
  world.Say(PlanWorld::Progress("Running", 1, 0, 100));
  world.TurnIn(seconds(6));
  EXPECT_EQ(world.Message("NodesReady"), "1 of 2 nodes are ready");
}

TEST(OperatorStatus, InitThatTakesLongIsTold) {
  PlanWorld world;
  world.RunJob();
  world.Pod("node-1-1").ready = false;
  json progress = PlanWorld::Progress("Running", 1, 0, 100);
  progress["init"] = "init() has been running for 1m30s on 1 node; node 1, process000: load m.py:7";
  world.Say(progress);
  world.TurnIn(seconds(3));
  EXPECT_EQ(world.Message("NodesReady"),
            "1 of 2 nodes are ready; init() has been running for 1m30s on 1 node; node 1, "
            "process000: load m.py:7");
  progress["init"] = "";
  world.Say(progress);
  world.TurnIn(seconds(6));
  EXPECT_EQ(world.Message("NodesReady"), "1 of 2 nodes are ready");
}

TEST(OperatorStatus, AStoreThatKeepsNodesWaitingIsTold) {
  PlanWorld world;
  world.RunJob();
  json progress = PlanWorld::Progress("Running", 1, 0, 100);
  progress["storeWaits"] = "node 1: throttled by the store s3://box since 2026-11-21T10:00:00Z";
  world.Say(progress);
  world.TurnIn(seconds(3));
  EXPECT_EQ(world.Message("NodesReady"),
            "2 of 2 nodes are ready; node 1: throttled by the store s3://box since "
            "2026-11-21T10:00:00Z");
  world.Say(PlanWorld::Progress("Running", 1, 0, 100));
  world.TurnIn(seconds(3));
  EXPECT_EQ(world.Message("NodesReady"), "2 of 2 nodes are ready");
}

TEST(OperatorStatus, WhatAContinuedJobRunsDifferentlyIsToldOnce) {
  PlanWorld world;
  world.Turn();
  world.StartAll();
  world.TurnIn(seconds(1));
  json progress = PlanWorld::Progress("Running", 1, 0, 100);
  progress["warning"] = "changed since the run was started: the code";
  world.Say(progress);
  world.TurnIn(seconds(10));
  EXPECT_EQ(world.Told("ContinuedWithChanges"), 1);
  world.Say(PlanWorld::Progress("Running", 2, 0, 100));
  world.TurnIn(seconds(10));
  world.Say(progress);
  world.TurnIn(seconds(10));
  EXPECT_EQ(world.Told("ContinuedWithChanges"), 1);
}

TEST(OperatorStatus, WhatComesUpWhileAJobRunsIsToldOnceAndStays) {
  PlanWorld world;
  world.Turn();
  world.StartAll();
  world.TurnIn(seconds(1));
  json progress = PlanWorld::Progress("Running", 1, 0, 100);
  progress["lateWarning"] = "the script wrote 1 file into its working folder";
  world.Say(progress);
  world.TurnIn(seconds(10));
  EXPECT_EQ(world.Told("RunWarning"), 1);
  EXPECT_EQ(world.Told("ContinuedWithChanges"), 0);
  world.Say(PlanWorld::Progress("Running", 2, 0, 100));  // of another epoch
  world.TurnIn(seconds(10));
  EXPECT_EQ(world.Told("RunWarning"), 1);
  EXPECT_EQ(world.Status().warning, "the script wrote 1 file into its working folder");
}

// Which bytes ran is known once a node has pulled them; that stays when the pods are gone.
TEST(OperatorStatus, TheImageIsShownByItsDigest) {
  PlanWorld world;
  world.RunJob();
  EXPECT_EQ(world.Status().effective.image, "registry.example/digits:1");
  const std::string digest = "registry.example/digits@sha256:" + std::string(64, '1');
  world.Pod("coordinator-1").main.image_id = "registry.example/other@sha256:22";
  world.Pod("node-1-1").main.image_id = digest;
  world.TurnIn(seconds(10));
  EXPECT_EQ(world.Status().effective.image, digest);
  world.Pod("node-1-1").main.image_id = "registry.example/digits@sha256:33";
  world.TurnIn(seconds(10));
  EXPECT_EQ(world.Status().effective.image, digest) << "the one that it began with";
}

TEST(OperatorStatus, ScaleAndUsageAreKept) {
  PlanWorld world;
  world.spec()["resources"] = json::parse(R"({"limits": {"nvidia.com/gpu": 2}})");
  world.RunJob();
  EXPECT_EQ(world.Status().replicas, 2);
  EXPECT_EQ(world.Status().selector,
            "parallelrun.dev/job-uid=" + world.uid() + ",parallelrun.dev/role=node");
  world.Say(PlanWorld::Progress("Running", 50, 0, 100));
  world.TurnIn(seconds(100));
  EXPECT_NEAR(static_cast<double>(world.Status().usage.node_seconds), 202, 4);
  EXPECT_EQ(world.Status().usage.gpu_seconds, 2 * world.Status().usage.node_seconds);
}

TEST(OperatorStatus, UsageCountsTheDevicesThatTheContainerHas) {
  PlanWorld world;
  world.spec()["resources"] = json::parse(R"({"limits": {"nvidia.com/gpu.shared": 1}})");
  world.spec()["podTemplate"] = json::parse(
      R"({"spec": {"containers": [
           {"name": "side", "resources": {"limits": {"nvidia.com/gpu": 8}}},
           {"name": "worker", "resources": {"limits": {"nvidia.com/gpu.shared": 3}}}]}})");
  world.RunJob();
  world.Say(PlanWorld::Progress("Running", 50, 0, 100));
  world.TurnIn(seconds(100));
  EXPECT_GT(world.Status().usage.gpu_seconds, 0);
  EXPECT_EQ(world.Status().usage.gpu_seconds, 3 * world.Status().usage.node_seconds);
}

TEST(OperatorStatus, UsageCountsANodeToItsEnd) {
  PlanWorld world;
  world.RunJob();
  const int64_t before = world.Status().usage.node_seconds;
  world.now += seconds(50);
  world.End(world.Pod("node-0-1"), 0);
  world.End(world.Pod("node-1-1"), 0);
  world.Say(PlanWorld::Progress("Running", 100, 0, 100));
  world.TurnIn(seconds(10));
  EXPECT_NEAR(static_cast<double>(world.Status().usage.node_seconds - before), 100, 4);
  world.Say(PlanWorld::Progress("Finalizing", 100, 0, 100));
  world.TurnIn(seconds(10));
  EXPECT_NEAR(static_cast<double>(world.Status().usage.node_seconds - before), 100, 4);
}

TEST(OperatorStatus, ReconcilingEndsOnceAllPodsAreMade) {
  PlanWorld world;
  world.Turn();
  EXPECT_TRUE(world.Status().Is("Reconciling"));
  world.Turn();
  EXPECT_FALSE(world.Status().Is("Reconciling"));
  EXPECT_FALSE(world.Status().Is("Stalled"));
}

TEST(OperatorStatus, LastWordsOfEveryKindAreRead) {
  EXPECT_EQ(ParseLastWords(R"({"error": "no"})").error, "no");
  EXPECT_EQ(ParseLastWords("Segmentation fault").error, "Segmentation fault");
  EXPECT_EQ(ParseLastWords("").error, "");
  const LastWords words = ParseLastWords(R"({"progress": {"state": "Failed", "verdict":
      {"outcome": "Failed", "reason": "NothingSucceeded"}, "miniBatches": {"failed": "x"}}})");
  ASSERT_TRUE(words.report);
  EXPECT_TRUE(words.report->Ended());
  EXPECT_EQ(words.report->failed, 0);
}

}  // namespace
}  // namespace parallelrun::operators
