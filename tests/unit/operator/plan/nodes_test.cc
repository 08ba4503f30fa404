// Nodes and coordinators that end: what counts, when a successor is made, and what people are told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/control.h"
#include "operator/plan/pods.h"
#include "tests/unit/operator/plan/world.h"

namespace parallelrun::operators {
namespace {

using nlohmann::json;
using testing::HasSubstr;

TEST(OperatorPlanNodes, AFailedNodeIsReplacedUnderANewNameWithBackOff) {
  PlanWorld world;
  world.RunJob();
  world.End(world.Pod("node-0-1"), 1);
  world.Turn();
  EXPECT_FALSE(world.Has("node-0-2"));
  EXPECT_EQ(world.Reason("NodesReady"), "NodeBackOff");
  EXPECT_EQ(world.Status().nodes.restarts, 1);
  world.TurnIn(seconds(9));
  EXPECT_FALSE(world.Has("node-0-2"));
  world.TurnIn(seconds(1));
  EXPECT_TRUE(world.Has("node-0-2"));
  EXPECT_TRUE(world.Has("node-0-1")) << "a tombstone";
  EXPECT_EQ(world.Told("NodeFailed"), 1);

  // The second time in a row it waits twice as long.
  world.Start(world.Pod("node-0-2"));
  world.now += seconds(5);
  world.End(world.Pod("node-0-2"), 2);
  world.Turn();
  world.TurnIn(seconds(19));
  EXPECT_FALSE(world.Has("node-0-3"));
  world.TurnIn(seconds(1));
  EXPECT_TRUE(world.Has("node-0-3"));
  EXPECT_FALSE(world.Has("node-0-1")) << "one tombstone an index";
  EXPECT_EQ(world.Status().nodes.restarts, 2);
}

json AtTheTail(int running, int pending, const json& nodes) {
  json progress = PlanWorld::Progress("Running", 100 - running - pending, 0, 100);
  progress["miniBatches"]["running"] = running;
  progress["miniBatches"]["pending"] = pending;
  progress["nodes"] = nodes;
  return progress;
}

json NodeWithProcesses(int index, int processes, int held) {
  return {{"index", index}, {"registered", true}, {"processes", processes}, {"held", held}};
}

// Of a job whose node 1 nobody has given a host yet.
PlanWorld WithoutAHostForOne() {
  PlanWorld world;
  world.Turn();
  world.Start(world.Pod("coordinator-1"));
  world.Start(world.Pod("node-0-1"));
  world.TurnIn(seconds(1));
  return world;
}

// An autoscaler would bring up a host for it, which would have nothing to do.
TEST(OperatorPlanNodes, APodThatNothingIsLeftForIsNotMade) {
  PlanWorld world = WithoutAHostForOne();
  world.Say(AtTheTail(1, 0, json::array({NodeWithProcesses(0, 2, 1)})));
  world.TurnIn(seconds(1));
  world.Reap();
  world.TurnIn(seconds(1));
  EXPECT_FALSE(world.Has("node-1-1"));
  EXPECT_FALSE(world.Has("node-1-2"));
  EXPECT_EQ(world.Reason("NodesReady"), "AllReady");
  EXPECT_THAT(world.Message("NodesReady"), HasSubstr("1 of 2 nodes are ready; 1 node is not made"));
  EXPECT_EQ(world.Status().nodes.ready, 1);
  // What was lost is to be run again, by whoever comes first.
  world.Say(AtTheTail(0, 1, json::array({NodeWithProcesses(0, 2, 0)})));
  world.TurnIn(seconds(1));
  EXPECT_TRUE(world.Has("node-1-2"));
  EXPECT_NE(world.Reason("NodesReady"), "AllReady");
}

TEST(OperatorPlanNodes, APodThatMayYetBeNeededIsMade) {
  json gave_up = NodeWithProcesses(0, 8, 0);
  gave_up["gaveUp"] = true;
  json away = NodeWithProcesses(0, 8, 0);
  away["registered"] = false;
  json lists = AtTheTail(1, 0, json::array({NodeWithProcesses(0, 8, 1)}));
  lists["listingDone"] = false;
  for (const json& progress :
       {AtTheTail(1, 1, json::array({NodeWithProcesses(0, 8, 1)})),
        AtTheTail(2, 0, json::array({NodeWithProcesses(0, 3, 2)})),
        AtTheTail(1, 0, json::array({gave_up})), AtTheTail(1, 0, json::array({away})), lists}) {
    SCOPED_TRACE(progress.dump());
    PlanWorld world = WithoutAHostForOne();
    world.Say(progress);
    world.TurnIn(seconds(1));
    EXPECT_TRUE(world.Pod("node-1-1").Live());
  }
  const json tail = AtTheTail(1, 0, json::array({NodeWithProcesses(0, 2, 1)}));
  {
    PlanWorld world;
    world.spec()["isolateFailures"] = true;
    world.Turn();
    world.Start(world.Pod("coordinator-1"));
    world.Start(world.Pod("node-0-1"));
    world.TurnIn(seconds(1));
    world.Say(tail);
    world.TurnIn(seconds(1));
    EXPECT_TRUE(world.Pod("node-1-1").Live()) << "a split makes many of one";
  }
  PlanWorld world = WithoutAHostForOne();
  world.Pod("node-1-1").node_name = "host";
  world.Say(tail);
  world.TurnIn(seconds(1));
  EXPECT_TRUE(world.Pod("node-1-1").Live()) << "it is on its way";
}

// A kubelet tells that a container has ended before it tells that the pod has.
TEST(OperatorPlanNodes, AFailureIsRememberedThoughItsPodStillLingers) {
  PlanWorld world;
  world.RunJob();
  std::vector<seconds> waited;
  for (const char* name : {"node-0-1", "node-0-2", "node-0-3"}) {
    world.Start(world.Pod(name));
    world.End(world.Pod(name), 1);
    world.Pod(name).lingers = true;
    const std::string next = "node-0-" + std::to_string(waited.size() + 2);
    const WallTime ended = world.now;
    for (int i = 0; i < 3; ++i) world.Turn();
    EXPECT_FALSE(world.Pod(name).deletion) << "it holds the back-off";
    EXPECT_THAT(world.Message("NodesReady"), HasSubstr("is made again at "));
    while (!world.Has(next) && world.now < ended + seconds(60)) world.TurnIn(seconds(1));
    waited.push_back(std::chrono::duration_cast<seconds>(world.now - ended));
    EXPECT_EQ(world.Pod(next).failures, static_cast<int32_t>(waited.size()));
    world.Turn();
    EXPECT_FALSE(world.Has(name)) << "its sidecars";
  }
  EXPECT_EQ(waited, (std::vector<seconds>{seconds(10), seconds(20), seconds(40)}));
  EXPECT_EQ(world.Status().nodes.restarts, 3);
}

json NodeHolds(int index, int batches) {
  return {{"index", index}, {"registered", true}, {"held", batches}};
}

TEST(OperatorPlanNodes, OneBadNodeDoesNotEndAJobWhoseOtherNodesWork) {
  PlanWorld world;
  world.spec()["nodeRestartLimit"] = 1;
  world.RunJob();
  json progress = PlanWorld::Progress("Running", 5, 0, 100);
  progress["nodes"] = {NodeHolds(0, 4), NodeHolds(1, 0)};
  world.Say(progress);
  for (int64_t life = 1; life <= 8; ++life) {
    const std::string name = "node-1-" + std::to_string(life);
    world.Start(world.Pod(name));
    world.End(world.Pod(name), 1, "", "init() failed");
    world.Turn();
    EXPECT_EQ(world.Reason("NodesReady"), "NodeBackOff");
    EXPECT_THAT(world.Message("NodesReady"), HasSubstr("; the other nodes go on with its work"));
    EXPECT_THAT(world.events.back().message, HasSubstr("; the other nodes go on with its work"));
    world.TurnIn(std::chrono::minutes(10));
  }
  EXPECT_FALSE(world.Status().Is("FailureTarget"));
  EXPECT_EQ(world.Status().nodes.restarts, 8);
  EXPECT_EQ(world.Status().nodes.against_limit, 0);

  // Whoever has failed before carries nobody, and nor does one that has nothing in hand.
  progress["nodes"] = {NodeHolds(0, 0), NodeHolds(1, 4)};
  world.Say(progress);
  world.Start(world.Pod("node-1-9"));
  world.End(world.Pod("node-0-1"), 1);
  world.Turn();
  EXPECT_EQ(world.Status().nodes.against_limit, 1);
  world.End(world.Pod("node-1-9"), 1);
  world.Turn();
  EXPECT_EQ(world.Reason("FailureTarget"), "NodeRestartLimitExceeded");
}

TEST(OperatorPlanNodes, AHostWhereANodeFailedTwiceIsAvoided) {
  PlanWorld world;
  world.RunJob();
  const auto affinity = [&world](const std::string& name) {
    for (const Action& action : world.done) {
      if (action.kind == Action::Kind::kCreate && action.name.ends_with(name)) {
        return action.object["spec"].value("affinity", json()).dump();
      }
    }
    return std::string("not made");
  };
  const auto fail = [&world](const std::string& name, const std::string& host) {
    world.Start(world.Pod(name));
    world.Pod(name).node_name = host;
    world.End(world.Pod(name), 1);
    world.TurnIn(std::chrono::minutes(10));
  };
  fail("node-0-1", "host-a");
  EXPECT_EQ(affinity("node-0-2"), "null") << "once is no pattern";
  fail("node-0-2", "host-a");
  EXPECT_THAT(affinity("node-0-3"), HasSubstr(R"("values":["host-a"])"));
  EXPECT_THAT(affinity("node-0-3"), testing::Not(HasSubstr("required")));
  fail("node-0-3", "host-b");
  fail("node-0-4", "host-b");
  EXPECT_THAT(affinity("node-0-5"), HasSubstr("host-a"));
  EXPECT_THAT(affinity("node-0-5"), HasSubstr("host-b"));
  // Memory is no fault of the host.
  world.Start(world.Pod("node-1-1"));
  world.End(world.Pod("node-1-1"), 137, "OOMKilled");
  world.TurnIn(std::chrono::minutes(10));
  const Observed seen = world.See();  // which the groups point into
  const PodGroups groups = GroupPods(seen.pods);
  ASSERT_NE(groups.nodes.at(1).Live(), nullptr);
  EXPECT_TRUE(groups.nodes.at(1).Live()->failed_hosts.empty());
  EXPECT_EQ(groups.nodes.at(1).Live()->failures, 1);
}

TEST(OperatorPlanNodes, OfManyBadHostsTheWorstAreKept) {
  PodDigest pod;
  pod.phase = PodPhase::kFailed;
  pod.main.ended = Ended{1, "Error", "", {}, {}};
  for (int i = 0; i < 8; ++i) pod.failed_hosts["host-" + std::to_string(i)] = i == 3 ? 1 : 2;
  pod.node_name = "host-9";
  const auto hosts = SuccessionOf({{&pod}}).failed_hosts;
  EXPECT_EQ(hosts.size(), 8U);
  EXPECT_EQ(hosts.count("host-3"), 0U);
  EXPECT_EQ(hosts.at("host-9"), 1);
}

TEST(OperatorPlanNodes, BackOffHasAnEndAndALongLifeEndsIt) {
  PodDigest pod;
  pod.phase = PodPhase::kFailed;
  pod.incarnation = 30;
  pod.failures = 29;
  pod.created = WallTime(seconds(1000));
  pod.main.ended = Ended{1, "Error", "", pod.created, pod.created + seconds(5)};
  const PodGroup group{{&pod}};
  EXPECT_EQ(SuccessionOf(group).not_before, pod.created + seconds(605));
  EXPECT_EQ(SuccessionOf(group).failures, 30);
  pod.main.ended->finished = pod.created + seconds(700);
  EXPECT_EQ(SuccessionOf(group).not_before, pod.created + seconds(710));
  EXPECT_EQ(SuccessionOf(group).failures, 1);
}

TEST(OperatorPlanNodes, DisruptionsAreReplacedAtOnceAndDoNotCount) {
  PlanWorld world;
  world.RunJob();
  world.now += seconds(60);
  world.Pod("node-0-1").disruption = "PreemptionByScheduler";
  world.Pod("node-0-1").deletion = world.now + seconds(60);
  world.Turn();
  EXPECT_TRUE(world.Has("node-0-2")) << "while the old one still terminates";
  EXPECT_EQ(world.Status().nodes.restarts, 0);
  EXPECT_EQ(world.Status().nodes.disruptions, 1);
  EXPECT_EQ(world.Told("NodeDisrupted"), 1);
  world.TurnIn(seconds(1));
  EXPECT_EQ(world.Status().nodes.disruptions, 1);
}

TEST(OperatorPlanNodes, ANodeThatIsTakenAwayAsSoonAsItIsMadeIsNoFailure) {
  PlanWorld world;
  world.RunJob();
  world.End(world.Pod("node-0-1"), 137);
  world.Pod("node-0-1").disruption = "EvictionByEvictionAPI";
  world.Turn();
  EXPECT_FALSE(world.Has("node-0-2")) << "not in a loop";
  EXPECT_EQ(world.Reason("NodesReady"), "NodeDisrupted");
  EXPECT_THAT(world.Message("NodesReady"),
              HasSubstr("node 0 was taken away (EvictionByEvictionAPI: it was evicted, as when its "
                        "host is drained) and is made again at "));
  EXPECT_EQ(world.Told("NodeBackOff"), 0);
  for (const EventToEmit& event : world.events) EXPECT_FALSE(event.warning) << event.reason;
  world.TurnIn(seconds(10));
  EXPECT_TRUE(world.Has("node-0-2"));
}

TEST(OperatorPlanNodes, EndsAreToldApart) {
  PodDigest pod;
  pod.phase = PodPhase::kFailed;
  EXPECT_EQ(EndOf(pod).cause, EndCause::kDisruption) << "empty containerStatuses (PodGC)";
  EXPECT_EQ(EndOf(pod).reason, "PodMissing");
  const struct {
    int code;
    const char* reason;
    EndCause cause;
    const char* expected;
  } cases[] = {{0, "Completed", EndCause::kFinished, "Completed"},
               {1, "Error", EndCause::kJob, "AgentGaveUp"},
               {2, "Error", EndCause::kJob, "AgentCannotStart"},
               {3, "Error", EndCause::kDrained, "Error"},
               {4, "Error", EndCause::kJob, "AgentNoRoom"},
               {137, "OOMKilled", EndCause::kMemory, "OOMKilled"},
               {137, "Error", EndCause::kJob, "Killed"},
               {128, "ContainerCannotRun", EndCause::kJob, "ContainerCannotRun"}};
  for (const auto& one : cases) {
    pod.main.ended = Ended{one.code, one.reason, "", {}, {}};
    EXPECT_EQ(EndOf(pod).cause, one.cause) << one.code << one.reason;
    EXPECT_EQ(EndOf(pod).reason, one.expected);
  }
  pod.main.ended = Ended{0, "Completed", "drained: it was told to go", {}, {}};
  EXPECT_EQ(EndOf(pod).cause, EndCause::kDrained);
  pod.main.ended = Ended{137, "Error", "", {}, {}};
  pod.deletion = WallTime(seconds(1));  // its grace was over
  EXPECT_EQ(EndOf(pod).cause, EndCause::kDisruption);
  EXPECT_EQ(EndOf(pod).reason, "Deleted");
  pod.deletion.reset();
  pod.main.ended.reset();
  pod.init.ended = Ended{1, "Error", "no space\n", {}, {}};
  EXPECT_EQ(EndOf(pod).reason, "RuntimeInstallFailed");
  EXPECT_EQ(EndOf(pod).message, "init container runtime ended with exit code 1: no space");
}

TEST(OperatorPlanNodes, AProgramThatCannotBeStartedNamesTheUserAndTheMend) {
  PodDigest pod;
  pod.phase = PodPhase::kFailed;
  pod.main.ended = Ended{128, "StartError", "exec: permission denied", {}, {}};
  EXPECT_THAT(EndOf(pod).message, HasSubstr("exec: permission denied"));
  EXPECT_THAT(EndOf(pod).message, HasSubstr("user 65532"));
  EXPECT_THAT(EndOf(pod).message, HasSubstr("podTemplate.spec.securityContext"));
}

TEST(OperatorPlanNodes, MemoryOfAWholeContainerDoesNotCountAndIsToldToTheCoordinator) {
  PlanWorld world;
  world.RunJob();
  world.End(world.Pod("node-1-1"), 137, "OOMKilled");
  world.TurnIn(seconds(1));
  EXPECT_EQ(world.Status().nodes.restarts, 0);
  EXPECT_EQ(world.Status().nodes.disruptions, 1);
  const json expected =
      json::parse(R"([{"node": 1, "incarnation": 1, "reason": "OOMKilled", "exitCode": 137}])");
  EXPECT_EQ(world.view.acknowledged->at("podEnds"), expected);
  EXPECT_FALSE(world.Has("node-1-2")) << "with back-off";
  world.TurnIn(seconds(10));
  EXPECT_TRUE(world.Has("node-1-2"));
}

TEST(OperatorPlanNodes, ALostStatusWriteCountsAnEndOnce) {
  PlanWorld world;
  world.RunJob();
  world.End(world.Pod("node-0-1"), 1);
  const json before = world.object["status"];
  world.TurnIn(seconds(11));
  world.object["status"] = before;  // the write did not arrive
  world.End(world.Pod("node-0-2"), 1);
  world.TurnIn(seconds(30));
  EXPECT_TRUE(world.Has("node-0-1")) << "kept until a status that was read holds its count";
  EXPECT_EQ(world.Status().nodes.restarts, 2);
  world.TurnIn(seconds(1));
  EXPECT_FALSE(world.Has("node-0-1"));
  EXPECT_EQ(world.Status().nodes.restarts, 2);
}

TEST(OperatorPlanNodes, TheRestartLimitFailsTheJobWithTheLastReason) {
  PlanWorld world;
  world.spec()["nodeRestartLimit"] = 1;
  world.RunJob();
  world.End(world.Pod("node-0-1"), 2, "", "no python3 in the image");
  world.End(world.Pod("node-1-1"), 2, "", "no python3 in the image");
  world.Turn();
  EXPECT_TRUE(world.Status().Is("FailureTarget"));
  EXPECT_EQ(world.Reason("FailureTarget"), "NodeRestartLimitExceeded");
  EXPECT_THAT(world.Message("FailureTarget"), HasSubstr("no python3 in the image"));
}

// It stands in no log that kubectl shows once the pod is gone.
TEST(OperatorPlanNodes, WhyInitFailedIsToldEverywhere) {
  PlanWorld world;
  world.RunJob();
  const std::string why =
      "no worker process could be kept running: 6 in a row failed while starting, or ended before "
      "their first mini-batch; the last one: KeyError: 'MODEL' (score.py:7)";
  world.End(world.Pod("node-1-1"), 1, "", why + "\n");
  world.Turn();
  const auto failed = std::find_if(world.events.begin(), world.events.end(),
                                   [](const auto& one) { return one.reason == "NodeFailed"; });
  ASSERT_NE(failed, world.events.end());
  EXPECT_THAT(failed->message, HasSubstr("KeyError: 'MODEL' (score.py:7)"));
  EXPECT_EQ(world.Reason("NodesReady"), "NodeBackOff");
  EXPECT_THAT(world.Message("NodesReady"), HasSubstr("KeyError: 'MODEL' (score.py:7)"));
  ASSERT_TRUE(world.Status().failure);
  EXPECT_EQ(world.Status().failure->reason, "") << "the job has not failed";
  ASSERT_EQ(world.Status().failure->errors.size(), 1U);
  const DistinctFailure error = world.Status().failure->errors[0];
  EXPECT_EQ(error.kind, "AgentGaveUp");
  EXPECT_THAT(error.message, HasSubstr("KeyError: 'MODEL' (score.py:7)"));
  EXPECT_EQ(error.node, 1);
  EXPECT_EQ(error.mini_batch, -1);
  EXPECT_FALSE(world.object["status"]["failure"]["errors"][0].contains("miniBatch"));
}

TEST(OperatorPlanNodes, TheDefaultLimitIsTakenFromTheHighestNodeCount) {
  PlanWorld world;
  world.spec()["nodeCount"] = 3;
  world.RunJob();
  world.Edit("nodeCount", 1);
  // 3 for each of three nodes, and 22 to find one mini-batch that ends nodes.
  world.object["status"]["nodes"]["restarts"] = 32;
  world.object["status"]["nodes"]["againstLimit"] = 31;
  world.Turn();
  EXPECT_FALSE(world.Status().Is("FailureTarget"));
  world.End(world.Pod("node-0-1"), 1);
  world.Turn();
  EXPECT_TRUE(world.Status().Is("FailureTarget"));
}

TEST(OperatorPlanNodes, OfTwoLivePodsOfANodeTheLaterStays) {
  PlanWorld world;
  world.RunJob();
  PodDigest twin = world.Pod("node-0-1");
  twin.name = "digits-0a1b2-node-0-2";
  twin.uid = "twin";
  twin.incarnation = 2;
  world.pods[twin.name] = twin;
  world.Turn();
  EXPECT_FALSE(world.Pod("node-0-1").Live());
  EXPECT_TRUE(world.Pod("node-0-2").Live());
}

TEST(OperatorPlanNodes, SidecarsDoNotKeepANodeAlive) {
  PlanWorld world;
  world.RunJob();
  json pod = WorkerPod({world.See().job.parsed.job.spec,
                        {"default", "digits", world.uid(), {}},
                        world.options,
                        "runtime",
                        world.options.coordinator_port},
                       0, {});
  pod["metadata"]["uid"] = world.Pod("node-0-1").uid;
  pod["metadata"]["creationTimestamp"] = "2026-11-21T09:00:01Z";
  pod["status"] = json::parse(R"({"phase": "Running", "containerStatuses": [
      {"name": "proxy", "state": {"running": {}}},
      {"name": "worker", "state": {"terminated": {"exitCode": 1, "reason": "Error",
        "finishedAt": "2026-11-21T09:00:02Z"}}}]})");
  world.pods[pod["metadata"]["name"]] = DigestPod(pod);
  world.Turn();
  EXPECT_EQ(world.Status().nodes.restarts, 1);
  world.TurnIn(seconds(10));
  EXPECT_TRUE(world.Has("node-0-2"));
  world.Turn();
  EXPECT_FALSE(world.Has("node-0-1")) << "its successor needs what its sidecars hold";
}

TEST(OperatorPlanNodes, SidecarsEndWithTheJob) {
  PlanWorld world;
  world.RunJob();
  json progress = PlanWorld::Progress("Succeeded", 100, 0, 100);
  progress["verdict"] = {{"outcome", "Succeeded"}, {"reason", "Complete"}, {"message", ""}};
  world.Say(progress);
  world.End(world.Pod("node-0-1"), 0);
  world.Pod("node-0-1").lingers = true;
  world.Turn();
  EXPECT_TRUE(world.Status().Is("Complete"));
  world.Turn();
  EXPECT_FALSE(world.Has("node-0-1"));
}

TEST(OperatorPlanNodes, DigestsReadWhatTheKubeletWrites) {
  const PodDigest pod = DigestPod(json::parse(R"({
      "metadata": {"name": "p", "uid": "u", "creationTimestamp": "2026-11-21T09:00:00Z",
        "labels": {"parallelrun.dev/role": "coordinator", "parallelrun.dev/incarnation": "x"}},
      "status": {"phase": "Running", "podIP": "10.1.2.3",
        "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                        "message": "no room"},
                       {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}],
        "containerStatuses": [{"name": "coordinator", "restartCount": 2,
          "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}},
          "lastState": {"terminated": {"exitCode": 2, "reason": "Error", "message": "{}"}}}]}})"));
  EXPECT_EQ(pod.role, PodRole::kCoordinator);
  EXPECT_EQ(pod.incarnation, 0);
  EXPECT_EQ(pod.ip, "10.1.2.3");
  EXPECT_EQ(pod.unschedulable, "no room");
  EXPECT_EQ(pod.disruption, "EvictionByEvictionAPI");
  EXPECT_EQ(pod.main.waiting_reason, "CrashLoopBackOff");
  EXPECT_EQ(pod.main.restarts, 2);
  ASSERT_TRUE(pod.main.ended);
  EXPECT_EQ(pod.main.ended->exit_code, 2);
  EXPECT_TRUE(DigestPod(json("nonsense")).Live());
}

TEST(OperatorPlanNodes, AHostWithoutRoomForObjectsIsToldWithTheField) {
  PlanWorld world;
  const std::string full = "0/3 nodes are available: 3 Insufficient ephemeral-storage.";
  world.Turn();
  world.Pod("node-1-1").unschedulable = full;
  world.TurnIn(seconds(1));
  EXPECT_THAT(world.Message("NodesReady"), testing::Not(HasSubstr("cache.size")));
  PlanWorld stores;
  stores.spec()["stores"] = json::parse(R"([{"name": "photos", "url": "s3://photos"}])");
  stores.spec()["inputs"] = json::parse(R"([{"name": "images", "files": {"store": "photos"}}])");
  stores.Turn();
  stores.Pod("node-1-1").unschedulable = full;
  stores.TurnIn(seconds(1));
  EXPECT_EQ(stores.Reason("NodesReady"), "Unschedulable");
  EXPECT_THAT(stores.Message("NodesReady"),
              HasSubstr("asks for the room of spec.cache.size: lower it"));
}

TEST(OperatorPlanNodes, AClaimOfTheOperatorsOwnThatIsNotBoundIsToldWithTheField) {
  PlanWorld world;
  world.spec()["stores"] = json::parse(R"([{"name": "photos", "url": "s3://photos"}])");
  world.spec()["output"] = {{"store", "photos"}, {"path", "scores"}};
  world.spec()["state"] = json::parse(
      R"({"volumeClaimTemplate": {"spec": {"resources": {"requests": {"storage": "1Gi"}}}}})");
  world.Turn();
  const std::string unbound =
      "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims.";
  world.Pod("coordinator-1").unschedulable = unbound;
  world.TurnIn(seconds(1));
  EXPECT_EQ(world.Reason("NodesReady"), "VolumeNotBound");
  EXPECT_THAT(
      world.Message("NodesReady"),
      testing::AllOf(HasSubstr("PersistentVolumeClaim digits-0a1b2-state for the state"),
                     HasSubstr("name one in state.volumeClaimTemplate.spec.storageClassName")));
  PlanWorld other;
  other.Turn();
  other.Pod("coordinator-1").unschedulable = unbound;
  other.TurnIn(seconds(1));
  EXPECT_EQ(other.Reason("NodesReady"), "VolumeNotBound");
  EXPECT_THAT(other.Message("NodesReady"), testing::Not(HasSubstr("volumeClaimTemplate")));
}

TEST(OperatorPlanNodes, WhyPodsDoNotRunIsTold) {
  PlanWorld world;
  world.Turn();
  PodDigest& pod = world.Pod("node-0-1");
  pod.main.waiting_reason = "ErrImagePull";
  pod.main.waiting_message = "manifest unknown";
  world.Pod("node-1-1").unschedulable = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu";
  world.TurnIn(seconds(1));
  EXPECT_EQ(world.Reason("NodesReady"), "ImagePullBackOff");
  EXPECT_THAT(world.Message("NodesReady"),
              testing::AllOf(testing::StartsWith("node 0: manifest unknown; push that image"),
                             testing::EndsWith("environment.imagePullSecrets (and 1 more)")));
  EXPECT_EQ(world.Status().display.status, "ImagePullBackOff");
  pod.main.waiting_reason = "ImagePullBackOff";
  world.TurnIn(seconds(1));
  EXPECT_EQ(world.Told("ImagePullBackOff"), 1) << "what flips is told once";
  pod.main.waiting_reason = "CreateContainerConfigError";
  pod.main.waiting_message = "secret \"x\" not found";
  world.TurnIn(seconds(1));
  EXPECT_EQ(world.Reason("NodesReady"), "CreateContainerConfigError");
  pod.main = {};
  world.TurnIn(seconds(1));
  EXPECT_EQ(world.Reason("NodesReady"), "Unschedulable");
  EXPECT_EQ(world.Message("NodesReady"),
            "node 1: 0/3 nodes are available: 3 Insufficient nvidia.com/gpu; lower nvidia.com/gpu "
            "of spec.resources while the job is suspended or add hosts");
  world.Pod("node-1-1").unschedulable.clear();
  world.StartAll();
  world.TurnIn(seconds(1));
  EXPECT_EQ(world.Reason("NodesReady"), "AllReady");
  EXPECT_EQ(world.Status().display.nodes, "2/2");
}

TEST(OperatorPlanNodes, AHostThatDoesNotAnswerIsTold) {
  const auto silent = [](const std::string& reason, const std::string& containers) {
    json pod = {{"status", {{"phase", "Running"}}}};
    pod["status"]["conditions"] = {
        {{"type", "Ready"}, {"status", "False"}, {"reason", reason}},
        {{"type", "ContainersReady"}, {"status", containers}},
    };
    return DigestPod(pod).host_silent;
  };
  EXPECT_TRUE(silent("", "True"));
  EXPECT_FALSE(silent("ContainersNotReady", "False"));
  EXPECT_FALSE(silent("ReadinessGatesNotReady", "True"));

  PlanWorld world;
  world.RunJob();
  world.Pod("node-1-1").ready = false;
  world.Pod("node-1-1").host_silent = true;
  world.Pod("node-1-1").node_name = "host-b";
  world.Turn();
  EXPECT_EQ(world.Reason("NodesReady"), "HostNotReady");
  EXPECT_EQ(world.Message("NodesReady"),
            "node 1: its host host-b does not answer; its work goes on elsewhere, and the pod is "
            "made again if the host stays away");
  EXPECT_EQ(world.Told("HostNotReady"), 1);
  EXPECT_FALSE(world.Status().Is("Stalled"));
}

TEST(OperatorPlanNodes, EventsOfPendingPodsAreRead) {
  PlanWorld world;
  world.Turn();
  const auto asks = [&world] {
    const Plan plan = world.Look();
    return std::any_of(plan.needs.begin(), plan.needs.end(),
                       [](const Need& need) { return need.key.kind == FactKind::kPodEvents; });
  };
  world.TurnIn(seconds(6));
  EXPECT_FALSE(asks()) << "the scheduler's words are in the pod's status";
  world.Pod("coordinator-1").node_name = "host-a";
  world.Pod("coordinator-1").created = world.now;
  EXPECT_FALSE(asks()) << "it is young";
  const std::string uid = world.Pod("coordinator-1").uid;
  Fact events;
  events.events = {{"Scheduled", "ok", false, world.now},
                   {"FailedAttachVolume", "Multi-Attach error for volume", true, world.now}};
  world.there[{FactKind::kPodEvents, uid}] = events;
  world.TurnIn(seconds(6));
  EXPECT_EQ(world.Reason("NodesReady"), "FailedAttachVolume");
  EXPECT_THAT(world.Message("NodesReady"), HasSubstr("out-of-service"));
  const auto max_age = [](const Plan& plan) {
    for (const Need& need : plan.needs) {
      if (need.key.kind == FactKind::kPodEvents) return need.max_age;
    }
    return Duration::zero();
  };
  EXPECT_EQ(max_age(world.Look()), seconds(10));
  EXPECT_EQ(max_age(world.TurnIn(seconds(20))), seconds(30)) << "it has waited for long";
}

TEST(OperatorPlanNodes, AKeyThatASecretLacksIsToldWithItsField) {
  PlanWorld world;
  world.spec()["stores"] = json::parse(R"([
    {"name": "photos", "url": "s3://photos"},
    {"name": "results", "url": "s3://results",
     "credentials": {"secretName": "results-keys", "secretAccessKey": "secret",
                     "sessionToken": "token"}}])");
  world.there[{FactKind::kSecret, "results-keys"}] = {};
  world.there[{FactKind::kSecret, "settings"}] = {};
  world.spec()["volumes"].push_back(
      {{"name", "settings"}, {"secret", {{"secretName", "settings"}}}});
  world.Turn();
  world.Pod("coordinator-1").node_name = "host-a";
  world.Pod("coordinator-1").created = world.now;
  const auto told = [&](const std::string& volume, const std::string& key) {
    Fact events;
    events.events = {
        {"FailedMount",
         "MountVolume.SetUp failed for volume \"" + volume +
             "\" : references non-existent secret key: " + key,
         true, world.now},
        {"FailedMount",
         "Unable to attach or mount volumes: unmounted volumes=[" + volume + "], timed out", true,
         world.now + seconds(5)}};
    world.there[{FactKind::kPodEvents, world.Pod("coordinator-1").uid}] = events;
    world.TurnIn(seconds(31));
    EXPECT_EQ(world.Reason("NodesReady"), "FailedMount");
    return world.Message("NodesReady");
  };
  EXPECT_EQ(
      told("parallelrun-store-1", "AWS_ACCESS_KEY_ID"),
      "coordinator: Secret results-keys of spec.stores: results has no key AWS_ACCESS_KEY_ID: "
      "add it there, and the job goes on by itself; where it has another name there, a new "
      "job says so in stores[].credentials.accessKeyId (MountVolume.SetUp failed for volume "
      "\"parallelrun-store-1\" : references non-existent secret key: AWS_ACCESS_KEY_ID)");
  EXPECT_EQ(world.Told("FailedMount"), 1);
  EXPECT_THAT(told("parallelrun-store-1", "secret"),
              HasSubstr("stores[].credentials.secretAccess"));
  EXPECT_THAT(told("parallelrun-store-1", "token"), HasSubstr("stores[].credentials.sessionToken"));
  EXPECT_THAT(told("settings", "mode"),
              HasSubstr("Secret settings of spec.volumes: settings has no key mode: add it there"));
  EXPECT_THAT(told("parallelrun-access", "tls.key"),
              testing::StartsWith("coordinator: MountVolume.SetUp failed"));
}

TEST(OperatorPlanNodes, AConflictIsNobodysNameAndTriedAgain) {
  PlanWorld world;
  ApplyFailure conflict;
  conflict.status = 409;
  conflict.reason = "Conflict";
  conflict.message = "Operation cannot be fulfilled on resourcequotas \"small\"";
  world.refuse["pods/digits-0a1b2-node-"] = conflict;
  world.Turn();
  world.Turn();
  EXPECT_EQ(world.Reason("NodesReady"), "ApplyFailed");
  EXPECT_FALSE(world.Status().Is("Stalled"));
  world.refuse.clear();
  world.TurnIn(seconds(5));
  world.TurnIn(seconds(60));
  EXPECT_EQ(world.Live(), 3);
}

TEST(OperatorPlanNodes, ARefusedPodIsTriedAgainGentlyAndNamed) {
  PlanWorld world;
  world.spec()["nodeCount"] = 15;
  ApplyFailure quota;
  quota.status = 403;
  quota.message = "pods \"x\" is forbidden: exceeded quota: small";
  world.refuse["pods/digits-0a1b2-node-"] = quota;
  world.Turn();
  world.done.clear();
  Plan plan = world.Turn();
  EXPECT_EQ(world.Did(Action::Kind::kCreate, "pods"), 0);
  EXPECT_EQ(world.Reason("NodesReady"), "QuotaExceeded");
  ASSERT_TRUE(plan.wake);
  EXPECT_LE(*plan.wake, world.now + seconds(5));
  world.TurnIn(seconds(5));
  EXPECT_EQ(world.Did(Action::Kind::kCreate, "pods"), 1) << "one, as a probe";
  EXPECT_EQ(world.Told("QuotaExceeded"), 1);
  world.refuse.clear();
  world.TurnIn(seconds(5));
  world.TurnIn(seconds(61));
  EXPECT_EQ(world.Live(), 16);
}

TEST(OperatorPlanNodes, ManyPodsAreMadeInSeveralPlans) {
  PlanWorld world;
  world.spec()["nodeCount"] = 40;
  Plan plan = world.Turn();
  EXPECT_EQ(world.Live(), 16) << "with the coordinator";
  EXPECT_TRUE(plan.write_status);
  ASSERT_TRUE(plan.wake);
  EXPECT_LE(*plan.wake, world.now + milliseconds(1));
  world.TurnIn(milliseconds(1));
  EXPECT_EQ(world.Live(), 32);
  world.TurnIn(milliseconds(1));
  EXPECT_EQ(world.Live(), 41);
}

TEST(OperatorPlanNodes, APodTemplateThatIsRefusedStallsTheJob) {
  PlanWorld world;
  ApplyFailure refused;
  refused.status = 422;
  refused.reason = "Invalid";
  refused.message = "spec.containers[0].resources.limits: must be greater than or equal to request";
  world.refuse["pods/"] = refused;
  world.Turn();
  world.Turn();
  EXPECT_EQ(world.Reason("NodesReady"), "InvalidPodTemplate");
  EXPECT_TRUE(world.Status().Is("Stalled"));
}

TEST(OperatorPlanNodes, ACoordinatorIsReplacedAndItsRestartsAreJudgedByResults) {
  PlanWorld world;
  world.spec()["coordinator"]["restartLimit"] = 2;
  world.RunJob();
  PodDigest& pod = world.Pod("coordinator-1");
  pod.main.ended = Ended{5, "Error", R"({"error": "fdatasync: Input/output error"})", {}, {}};
  pod.main.restarts = 2;
  world.TurnIn(seconds(1));
  EXPECT_EQ(world.Status().coordinator.fruitless, 2);
  EXPECT_FALSE(world.Status().Is("FailureTarget"));
  world.Say(PlanWorld::Progress("Running", 10, 0, 100));
  world.TurnIn(seconds(1));
  EXPECT_EQ(world.Status().coordinator.fruitless, 0);
  pod.main.restarts = 5;
  world.TurnIn(seconds(1));
  EXPECT_EQ(world.Reason("FailureTarget"), "CoordinatorRestartLimitExceeded");
  EXPECT_THAT(world.Message("FailureTarget"), HasSubstr("fdatasync"));
}

TEST(OperatorPlanNodes, CoordinatorsLostWithTheirHostsDoNotCount) {
  PlanWorld world;
  world.spec()["coordinator"]["restartLimit"] = 0;
  world.RunJob();
  for (const char* name : {"coordinator-1", "coordinator-2", "coordinator-3"}) {
    world.now += seconds(60);
    world.Pod(name).deletion = world.now + seconds(30);
    world.Turn();
  }
  EXPECT_TRUE(world.Has("coordinator-4"));
  EXPECT_FALSE(world.Status().Is("FailureTarget"));
  EXPECT_TRUE(world.missing_pods.empty());
}

TEST(OperatorPlanNodes, ACoordinatorThatItsKubeletTurnsAwayIsNotMadeInALoop) {
  PlanWorld world;
  world.Turn();
  const auto turn_away = [&world](const std::string& name) {
    PodDigest& pod = world.Pod(name);
    pod.phase = PodPhase::kFailed;
    pod.reason = "OutOfcpu";
  };
  turn_away("coordinator-1");
  const Plan plan = world.TurnIn(seconds(1));
  EXPECT_FALSE(world.Has("coordinator-2"));
  ASSERT_TRUE(plan.wake);
  EXPECT_LE(*plan.wake, world.Pod("coordinator-1").created + seconds(10));
  world.TurnIn(seconds(9));
  EXPECT_TRUE(world.Has("coordinator-2"));
  turn_away("coordinator-2");
  world.TurnIn(seconds(1));
  EXPECT_FALSE(world.Has("coordinator-3"));
  EXPECT_TRUE(world.missing_pods.empty());
}

TEST(OperatorPlanNodes, ACoordinatorThatIsTakenAwayWhileItRunsIsReplacedAtOnce) {
  PlanWorld deleted;
  deleted.RunJob();
  deleted.Pod("coordinator-1").deletion = deleted.now + seconds(60);
  deleted.Turn();
  EXPECT_TRUE(deleted.Has("coordinator-2"));
  PlanWorld evicted;
  evicted.RunJob();
  evicted.End(evicted.Pod("coordinator-1"), 137);
  evicted.Pod("coordinator-1").disruption = "EvictionByEvictionAPI";
  evicted.Turn();
  EXPECT_TRUE(evicted.Has("coordinator-2"));
}

TEST(OperatorPlanNodes, OfManyEndsTheNewestAreTold) {
  PlanWorld world;
  world.spec()["nodeCount"] = 600;
  world.RunJob();
  for (int i = 0; i < 50; ++i) world.TurnIn(milliseconds(1));
  ASSERT_EQ(world.Live(), 601);
  for (auto& [name, pod] : world.pods) {
    if (pod.role != PodRole::kNode) continue;
    world.End(pod, 1, std::string(300, 'x'));
    pod.main.ended->finished = world.now + seconds(pod.index);
  }
  world.TurnIn(seconds(1));
  const std::string body = world.view.acknowledged->dump();
  EXPECT_LT(body.size(), 64U << 10);
  EXPECT_TRUE(coordinator::ParseControl(body).ok());
  const json& ends = world.view.acknowledged->at("podEnds");
  ASSERT_EQ(ends.size(), 500U);
  EXPECT_EQ(ends[0]["node"], 599);
  EXPECT_EQ(ends[499]["node"], 100);
}

}  // namespace
}  // namespace parallelrun::operators
