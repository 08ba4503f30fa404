// The table of docs/operator.md, "Whose fault an end is": a row each, and what a node does that
// ends so again and again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/plan/pods.h"
#include "tests/unit/operator/plan/world.h"

namespace parallelrun::operators {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr char kSizeLimit[] = "Usage of EmptyDir volume \"work\" exceeds the limit \"1Gi\". ";

PodDigest EndedPod(const std::string& reason, const std::string& disruption) {
  PodDigest pod;
  pod.phase = PodPhase::kFailed;
  pod.reason = reason;
  pod.disruption = disruption;
  return pod;
}

EndCause CauseOf(const std::string& reason, const std::string& disruption = "") {
  return EndOf(EndedPod(reason, disruption)).cause;
}

TEST(OperatorPlanEnds, WhoTakesAPodAwayIsFree) {
  for (const char* disruption : {"PreemptionByScheduler", "EvictionByEvictionAPI",
                                 "DeletionByTaintManager", "DeletionByPodGC"}) {
    EXPECT_EQ(CauseOf("", disruption), EndCause::kDisruption) << disruption;
    EXPECT_EQ(CauseOf("Evicted", disruption), EndCause::kDisruption) << disruption;
    EXPECT_EQ(CauseOf("SomethingNew", disruption), EndCause::kDisruption) << disruption;
  }
  for (const char* reason : {"", "NodeLost", "Preempting"}) {
    EXPECT_EQ(CauseOf(reason), EndCause::kDisruption) << reason;
  }
  EXPECT_EQ(CauseOf("Preempting", "TerminationByKubelet"), EndCause::kDisruption);
}

TEST(OperatorPlanEnds, WhatAKubeletTurnsAwayIsFreeButSlowed) {
  for (const char* reason :
       {"OutOfcpu", "OutOfmemory", "OutOfpods", "OutOfnvidia.com/gpu", "NodeAffinity",
        "TopologyAffinityError", "UnexpectedAdmissionError", "InvalidNodeInfo",
        "UnexpectedPodStatus", "NodeShutdown", "Shutdown", "Terminated"}) {
    EXPECT_EQ(CauseOf(reason), EndCause::kRefused) << reason;
    EXPECT_EQ(CauseOf(reason, "TerminationByKubelet"), EndCause::kRefused) << reason;
  }
  EXPECT_EQ(CauseOf("", "TerminationByKubelet"), EndCause::kRefused);
}

TEST(OperatorPlanEnds, AnEvictionIsTheHostsWhereTheConditionSaysSoElseThePodsOwn) {
  EXPECT_EQ(CauseOf("Evicted", "TerminationByKubelet"), EndCause::kPressure);
  EXPECT_EQ(CauseOf("Evicted"), EndCause::kDisk);
  // Of a kubelet that gives such an eviction a condition of its own.
  EXPECT_EQ(CauseOf("Evicted", "EvictionByKubelet"), EndCause::kDisk);
  EXPECT_EQ(EndOf(EndedPod("Evicted", "EvictionByKubelet")).reason, "Evicted")
      << "by this word the coordinator knows it";
  EXPECT_EQ(EndOf(EndedPod("Evicted", "TerminationByKubelet")).reason, "TerminationByKubelet");
}

// A message is no API: real ones accuse pods that used 60 KiB and asked for nothing.
TEST(OperatorPlanEnds, NoMessageDecides) {
  PodDigest pod = EndedPod("Evicted", "TerminationByKubelet");
  pod.message =
      "Container worker was using 60Ki, request is 0, has larger consumption of "
      "ephemeral-storage. ";
  EXPECT_EQ(EndOf(pod).cause, EndCause::kPressure);
  EXPECT_EQ(EndOf(pod).message,
            "Evicted: Container worker was using 60Ki, request is 0, has larger consumption of "
            "ephemeral-storage; its host ran short, and another one is taken if there is one");
  pod.disruption.clear();
  pod.message = "The node was low on resource: memory.";
  EXPECT_EQ(EndOf(pod).cause, EndCause::kDisk);
  pod.message.clear();
  EXPECT_THAT(EndOf(pod).message, HasSubstr("Evicted; it used more disk than its own limits"));
}

TEST(OperatorPlanEnds, WhatNobodyKnowsIsFreeThreeTimesAndThenThePodsOwn) {
  for (PodDigest pod : {EndedPod("SysctlForbidden", ""), EndedPod("", "NewController")}) {
    for (pod.setbacks = 0; pod.setbacks < 3; ++pod.setbacks) {
      EXPECT_EQ(EndOf(pod).cause, EndCause::kRefused) << pod.reason << pod.setbacks;
    }
    EXPECT_EQ(EndOf(pod).cause, EndCause::kJob) << pod.reason;
  }
  // What its container said counts before a word that nobody knows.
  PodDigest pod = EndedPod("SomethingNew", "");
  pod.main.ended = Ended{137, "OOMKilled", "", {}, {}};
  EXPECT_EQ(EndOf(pod).cause, EndCause::kMemory);
  pod.reason = "Evicted";
  EXPECT_EQ(EndOf(pod).cause, EndCause::kDisk) << "the kubelet kills what it evicts";
}

// Ends of node 0 in so many seconds, each of them as soon as its pod was made.
struct Loop {
  Loop(const std::string& reason, const std::string& disruption, const std::string& message) {
    world.spec()["nodeCount"] = 1;
    world.RunJob();
    std::map<std::string, WallTime> seen;
    for (int second = 0; second < 1800; ++second) {
      for (auto& [name, pod] : world.pods) {
        if (pod.role != PodRole::kNode || pod.Terminal()) continue;
        pod.node_name = "host-a";
        if (world.now - seen.try_emplace(name, world.now).first->second < seconds(8)) continue;
        ++ends;
        world.End(pod, 137);
        pod.reason = reason;
        pod.disruption = disruption;
        pod.message = message;
      }
      world.TurnIn(seconds(1));
    }
    for (const EventToEmit& event : world.events) {
      if (event.warning && event.reason.starts_with("Node")) ++warnings;
    }
    for (const Action& action : world.done) {
      if (action.kind != Action::Kind::kCreate || !action.name.ends_with("node-0-2")) continue;
      second_pod = action.object.dump();
    }
  }
  PlanWorld world;
  int ends = 0;
  int warnings = 0;
  std::string second_pod;
};

// It was made again for ever, each ten seconds, with no word but a Normal event.
TEST(OperatorPlanEnds, ANodeThatFillsItsOwnDiskComesLaterAndLater) {
  const Loop loop("Evicted", "", kSizeLimit);
  EXPECT_LT(loop.ends, 12);
  EXPECT_GT(loop.warnings, 0);
  EXPECT_GT(loop.world.Told("NodeOutOfDisk"), 3);
  EXPECT_EQ(loop.world.Reason("NodesReady"), "NodeBackOff");
  EXPECT_THAT(loop.world.Message("NodesReady"),
              HasSubstr("Evicted: Usage of EmptyDir volume \"work\" exceeds the limit \"1Gi\"; it "
                        "used more disk than its own limits allow: raise "));
  EXPECT_EQ(loop.world.Status().nodes.restarts, 0) << "as for memory";
  EXPECT_EQ(loop.world.Status().nodes.disruptions, loop.ends);
  EXPECT_THAT(loop.second_pod, Not(HasSubstr("host-a"))) << "the host is not to blame";
  const std::string told = loop.world.view.acknowledged->at("podEnds").dump();
  EXPECT_THAT(told, HasSubstr(R"("reason":"Evicted")"));
}

TEST(OperatorPlanEnds, AHostThatRunsShortIsAvoidedAtOnceAndWarnedOf) {
  const Loop loop("Evicted", "TerminationByKubelet",
                  "The node was low on resource: ephemeral-storage. Container worker was using "
                  "18Gi, request is 0. ");
  EXPECT_LT(loop.ends, 12);
  EXPECT_GE(loop.warnings, loop.ends);
  EXPECT_GT(loop.world.Told("NodeDisrupted"), 3);
  EXPECT_THAT(loop.world.Message("NodesReady"), HasSubstr("using 18Gi, request is 0; its host"));
  EXPECT_EQ(loop.world.Status().nodes.restarts, 0);
  EXPECT_THAT(loop.second_pod, HasSubstr(R"("values":["host-a"])"));
  EXPECT_THAT(loop.second_pod, HasSubstr(R"("parallelrun.dev/failures":"0")"))
      << "it has not failed: others may count on it";
  EXPECT_THAT(loop.second_pod, HasSubstr(R"("parallelrun.dev/setbacks":"1")"));
  const std::string told = loop.world.view.acknowledged->at("podEnds").dump();
  EXPECT_THAT(told, HasSubstr(R"("reason":"TerminationByKubelet")"));
}

TEST(OperatorPlanEnds, AKubeletThatHasNoRoomIsNoFaultWarnedOfFromTheThirdTimeOn) {
  const Loop loop("OutOfcpu", "", "Node didn't have enough resource: cpu");
  EXPECT_LT(loop.ends, 12);
  EXPECT_EQ(loop.world.Status().nodes.restarts, 0);
  int told = 0;
  for (const EventToEmit& event : loop.world.events) {
    if (event.reason != "NodeDisrupted" || !event.message.starts_with("node 0 (")) continue;
    EXPECT_EQ(event.warning, ++told >= 3) << told;
  }
  EXPECT_EQ(told, loop.ends);
}

TEST(OperatorPlanEnds, WhatNobodyKnowsComesToTheLimitInTheEnd) {
  const Loop loop("SysctlForbidden", "NewController", "");
  EXPECT_EQ(loop.world.Status().nodes.restarts, loop.ends - 3);
}

// The pause is the host's: another one may have room.
TEST(OperatorPlanEnds, ARefusalSlowsDownOnlyWhereItCameFrom) {
  PodDigest pod = EndedPod("OutOfcpu", "");
  pod.created = WallTime(seconds(1000));
  pod.incarnation = 3;
  pod.setbacks = 2;
  pod.failed_hosts = {{"host-a", 2}};
  pod.node_name = "host-b";
  EXPECT_EQ(SuccessionOf({{&pod}}).not_before, pod.created + seconds(10));
  pod.node_name = "host-a";
  EXPECT_EQ(SuccessionOf({{&pod}}).not_before, pod.created + seconds(40));
  pod.node_name = "";
  EXPECT_EQ(SuccessionOf({{&pod}}).not_before, pod.created + seconds(40));
  EXPECT_EQ(SuccessionOf({{&pod}}).setbacks, 3);
  EXPECT_EQ(SuccessionOf({{&pod}}).failures, 0);
}

TEST(OperatorPlanEnds, ACoordinatorThatFillsItsDiskIsNotMadeForEver) {
  for (const bool own : {true, false}) {
    PlanWorld world;
    world.spec()["coordinator"]["restartLimit"] = 2;
    world.RunJob();
    for (int life = 1; life <= 5; ++life) {
      const std::string name = "coordinator-" + std::to_string(life);
      if (!world.Has(name)) break;
      world.Start(world.Pod(name));
      world.End(world.Pod(name), 137);
      world.Pod(name).reason = "Evicted";
      if (!own) world.Pod(name).disruption = "TerminationByKubelet";
      world.Turn();
      EXPECT_FALSE(world.Has("coordinator-" + std::to_string(life + 1))) << "not in a loop";
      world.TurnIn(seconds(10));
      world.TurnIn(seconds(1));
    }
    EXPECT_EQ(world.Reason("FailureTarget"), own ? "CoordinatorRestartLimitExceeded" : "Pending");
  }
}

}  // namespace
}  // namespace parallelrun::operators
