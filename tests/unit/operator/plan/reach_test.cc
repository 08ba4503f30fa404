// Who does not reach whom. tests/traces/operator has the pauses; here is what must not be told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/operator/plan/world.h"

namespace parallelrun::operators {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

json NodeSays(int index, bool registered, bool silent, int pod) {
  return {{"index", index}, {"registered", registered}, {"silent", silent}, {"pod", pod}};
}

json WithNodes(std::initializer_list<json> nodes) {
  json progress = PlanWorld::Progress("Running", 1, 0, 100);
  progress["nodes"] = json::array();
  for (const json& node : nodes) progress["nodes"].push_back(node);
  return progress;
}

// Every container has run for `time`, as its kubelet tells.
PlanWorld RunsFor(Duration time) {
  PlanWorld world;
  world.RunJob();
  for (auto& [name, pod] : world.pods) {
    pod.main.started = world.now;
    if (pod.role == PodRole::kCoordinator) pod.ready_since = world.now;
  }
  world.now += time;
  return world;
}

std::string ReasonAfter(PlanWorld& world, const json& progress) {
  world.Say(progress);
  world.Turn();
  return world.Reason("NodesReady");
}

TEST(OperatorPlanReach, ANodeThatHasComeIsNotUnreachable) {
  PlanWorld world = RunsFor(seconds(15));
  EXPECT_EQ(ReasonAfter(world, WithNodes({NodeSays(0, true, false, 1)})), "CoordinatorUnreachable");
  EXPECT_THAT(world.Message("NodesReady"), HasSubstr("node 1 has run for more than 15 s"));
  const json first = NodeSays(0, true, false, 1);
  EXPECT_EQ(ReasonAfter(world, WithNodes({first, NodeSays(1, true, false, 1)})), "AllReady");
  // It has left, and its pod ends in a moment.
  EXPECT_EQ(ReasonAfter(world, WithNodes({first, NodeSays(1, false, false, 1)})), "AllReady");
  // A coordinator of an earlier release says neither.
  EXPECT_EQ(ReasonAfter(world, WithNodes({first, {{"index", 1}, {"registered", false}}})),
            "AllReady");
}

// The pod of before has come; this one has not, or waits for the last work of that one.
TEST(OperatorPlanReach, EachPodOfANodeCounts) {
  PlanWorld world = RunsFor(seconds(15));
  PodDigest& pod = world.Pod("node-1-1");
  pod.incarnation = 2;
  const json first = NodeSays(0, true, false, 1);
  EXPECT_EQ(ReasonAfter(world, WithNodes({first, NodeSays(1, false, false, 1)})),
            "CoordinatorUnreachable");
  EXPECT_EQ(ReasonAfter(world, WithNodes({first, NodeSays(1, false, true, 1)})),
            "CoordinatorUnreachable");
  EXPECT_EQ(ReasonAfter(world, WithNodes({first, NodeSays(1, true, false, 2)})), "AllReady");
}

TEST(OperatorPlanReach, ACoordinatorThatHasJustComeIsGivenTime) {
  PlanWorld world = RunsFor(seconds(3600));
  world.Pod("coordinator-1").ready_since = world.now;
  EXPECT_EQ(ReasonAfter(world, WithNodes({})), "AllReady");
  world.now += milliseconds(14'999);
  EXPECT_EQ(ReasonAfter(world, WithNodes({})), "AllReady");
  world.now += milliseconds(1);
  EXPECT_EQ(ReasonAfter(world, WithNodes({})), "CoordinatorUnreachable");
  EXPECT_EQ(world.Told("CoordinatorUnreachable"), 1);
}

TEST(OperatorPlanReach, OnlyNewsCounts) {
  PlanWorld world = RunsFor(seconds(3600));
  world.Say(WithNodes({}));
  world.now += milliseconds(10'001);
  world.Turn();
  EXPECT_EQ(world.Reason("NodesReady"), "AllReady") << "what was said is old";
  EXPECT_EQ(ReasonAfter(world, WithNodes({})), "CoordinatorUnreachable");
  world.Say(WithNodes({}));
  world.DoNotAnswer("no answer");
  world.Turn();
  EXPECT_EQ(world.Reason("NodesReady"), "AllReady") << "it does not answer the operator";
}

TEST(OperatorPlanReach, OfManyNodesSomeAreNamed) {
  PlanWorld world;
  world.spec()["nodeCount"] = 40;
  world.Turn();
  world.TurnIn(seconds(1));
  world.TurnIn(seconds(1));
  ASSERT_EQ(world.Live(), 41);
  world.StartAll();
  for (auto& [name, pod] : world.pods) pod.main.started = world.now;
  world.TurnIn(seconds(15));
  EXPECT_EQ(ReasonAfter(world, WithNodes({})), "CoordinatorUnreachable");
  const std::string message = world.Message("NodesReady");
  EXPECT_THAT(message,
              testing::StartsWith("nodes 0, 1, 2 and 37 more have run for more than 15 s"));
  EXPECT_THAT(message, testing::EndsWith("{protocol: TCP, port: 53}]}]}")) << "it is not cut";
}

TEST(OperatorPlanReach, ACoordinatorThatNeverAnsweredIsToldFromTheFirstCallOn) {
  PlanWorld world;
  world.coordinator_listens = false;
  world.Turn();
  world.StartAll();
  world.TurnIn(seconds(60));
  EXPECT_EQ(world.Reason("NodesReady"), "AllReady") << "nobody has asked it yet";
  world.DoNotAnswer("connection refused");
  world.Turn();
  EXPECT_EQ(world.Reason("NodesReady"), "AllReady");
  world.TurnIn(seconds(5));
  EXPECT_EQ(world.Reason("NodesReady"), "CoordinatorSilent");
  EXPECT_EQ(world.Status().display.status, "CoordinatorSilent");
  EXPECT_THAT(world.Message("NodesReady"),
              HasSubstr("let the operator in namespace parallelrun-system reach that port"));
  EXPECT_EQ(world.Told("CoordinatorSilent"), 0);
  // It reads its ledger again, after a crash.
  world.Pod("coordinator-1").ready = false;
  world.TurnIn(seconds(60));
  EXPECT_THAT(world.Reason("NodesReady"), Not("CoordinatorSilent"));
}

TEST(OperatorPlanReach, ASilentCoordinatorIsNoReasonToReplaceAnything) {
  PlanWorld world = RunsFor(seconds(60));
  const json all = WithNodes({NodeSays(0, true, false, 1), NodeSays(1, true, false, 1)});
  ASSERT_EQ(ReasonAfter(world, all), "AllReady");
  const size_t done = world.done.size();
  for (int s = 0; s < 3600; s += 5) {
    world.DoNotAnswer("no answer within 5 s");
    world.TurnIn(seconds(5));
  }
  EXPECT_EQ(world.Reason("NodesReady"), "CoordinatorSilent");
  EXPECT_TRUE(world.Status().Is("NodesReady")) << "pods are ready, as far as their kubelets know";
  EXPECT_FALSE(world.Status().Is("Stalled"));
  EXPECT_EQ(world.Status().display.eta, "");
  EXPECT_FALSE(world.Status().progress->estimated_completion);
  EXPECT_EQ(world.Told("CoordinatorSilent"), 1);
  EXPECT_EQ(world.Live(), 3);
  for (size_t i = done; i < world.done.size(); ++i) {
    EXPECT_EQ(world.done[i].kind, Action::Kind::kEnsureAccess) << world.done[i].Target();
  }
  // Kubernetes knows by then, or not: the words are better with it.
  world.Pod("coordinator-1").ready = false;
  world.Pod("coordinator-1").host_silent = true;
  world.Pod("coordinator-1").node_name = "host-c";
  world.TurnIn(seconds(5));
  EXPECT_THAT(world.Message("NodesReady"), HasSubstr("its host host-c does not answer either"));
  EXPECT_EQ(world.Told("CoordinatorSilent"), 1);
  EXPECT_EQ(ReasonAfter(world, all), "AllReady") << "it lifts by itself";
  EXPECT_EQ(world.Status().display.eta, "1m00s");
}

TEST(OperatorPlanReach, SilentNodesAreToldUnlessTheirHostIs) {
  PlanWorld world = RunsFor(seconds(60));
  world.Pod("node-0-1").node_name = world.Pod("node-1-1").node_name = "host-b";
  const json silent = WithNodes({NodeSays(0, false, true, 1), NodeSays(1, false, true, 1)});
  EXPECT_EQ(ReasonAfter(world, silent), "NodeSilent");
  EXPECT_EQ(world.Message("NodesReady"),
            "nodes 0 and 1 have said nothing for 10 s: their host host-b may be cut off, frozen or "
            "gone; their work goes on elsewhere, and the pods are made again if Kubernetes gives "
            "them up");
  EXPECT_EQ(world.Told("NodeSilent"), 1);
  for (const char* name : {"node-0-1", "node-1-1"}) {
    world.Pod(name).ready = false;
    world.Pod(name).host_silent = true;
  }
  EXPECT_EQ(ReasonAfter(world, silent), "HostNotReady");
  // Every mini-batch is settled: nodes go, and say so or not.
  PlanWorld over = RunsFor(seconds(60));
  json finalizing = PlanWorld::Progress("Finalizing", 100, 0, 100);
  finalizing["nodes"] = {NodeSays(0, false, true, 1), NodeSays(1, false, true, 1)};
  EXPECT_THAT(ReasonAfter(over, finalizing), Not("NodeSilent"));
}

TEST(OperatorReach, TimesOfPodsAreRead) {
  const PodDigest pod = DigestPod(json::parse(R"({
    "metadata": {"labels": {"parallelrun.dev/role": "coordinator"}},
    "status": {
      "conditions": [{"type": "Ready", "status": "True",
                      "lastTransitionTime": "2026-11-21T09:00:09Z"}],
      "containerStatuses": [{"name": "coordinator",
                             "state": {"running": {"startedAt": "2026-11-21T09:00:05Z"}}}]}})"));
  EXPECT_EQ(pod.main.started, PlanWorld::At("2026-11-21T09:00:05Z"));
  EXPECT_EQ(pod.ready_since, PlanWorld::At("2026-11-21T09:00:09Z"));
  const PodDigest silent = DigestPod(json::parse(R"({"status": {"conditions": [
    {"type": "Ready", "status": "False", "lastTransitionTime": "2026-11-21T09:00:09Z"}]}})"));
  EXPECT_EQ(silent.ready_since, WallTime{});
}

TEST(OperatorReach, NodesOfAReportAreRead) {
  const auto report = ParseReport(json::parse(R"({"nodes": [
    {"index": 0, "registered": true, "silent": false, "pod": 3},
    {"index": 1, "registered": false, "silent": true},
    {"index": 2, "registered": "yes", "silent": 1, "pod": -4}]})"));
  ASSERT_TRUE(report);
  ASSERT_EQ(report->nodes.size(), 3U);
  EXPECT_EQ(report->nodes[0].pod, 3);
  EXPECT_TRUE(report->nodes[1].silent);
  EXPECT_EQ(report->nodes[1].pod, 0);
  EXPECT_FALSE(report->nodes[2].registered || report->nodes[2].silent);
  EXPECT_EQ(report->nodes[2].pod, 0);
  EXPECT_EQ(report->registered, std::vector<int32_t>{0});
}

}  // namespace
}  // namespace parallelrun::operators
