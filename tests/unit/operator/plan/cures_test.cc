// Which field cures what others refuse, in the words that they use.
#include "operator/plan/cures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/operator/plan/world.h"

namespace parallelrun::operators {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr char kCoordinatorPod[] = "pods/digits-0a1b2-coordinator-1";
constexpr char kNodePod[] = "pods/digits-0a1b2-node-0-1";

class OperatorPlanCures : public testing::Test {
 protected:
  static ApplyFailure Refused(const std::string& object, const std::string& message) {
    return {object, 403, "Forbidden", message + " (Forbidden)", WallTime{}};
  }
  std::string OfQuota(const std::string& object, const std::string& message) const {
    return CureOfQuota(world_.job(), Refused(object, message));
  }
  std::string OfLimitRange(const std::string& object, const std::string& message) const {
    const ObservedJob job = ReadObservedJob(world_.object);
    return CureOfLimitRange(job.parsed.job.spec, world_.job(), Refused(object, message));
  }

  std::string OfImage(bool runtime, const std::string& message) const {
    return CureOfImage(ReadObservedJob(world_.object).parsed.job.spec, runtime, message);
  }
  std::string OfUnschedulable(PodRole role, const std::string& message) const {
    const ObservedJob job = ReadObservedJob(world_.object);
    return CureOfUnschedulable(job.parsed.job.spec, role, "0/3 nodes are available: " + message);
  }

  PlanWorld world_;
};

TEST_F(OperatorPlanCures, AQuotaThatIsFullIsRaisedOrLessIsAskedFor) {
  const std::string full =
      "exceeded quota: small, requested: pods=1, used: pods=2, limited: pods=2";
  EXPECT_EQ(OfQuota(kNodePod, full),
            "; raise the quota, or lower nodeCount or resources, and the job goes on by itself");
  EXPECT_EQ(OfQuota(kCoordinatorPod, full), OfQuota(kNodePod, full)) << "they share the room";
  EXPECT_THAT(OfQuota("services/digits-0a1b2-coordinator", full),
              HasSubstr("or delete services that nobody needs"));
  EXPECT_THAT(OfQuota("persistentvolumeclaims/digits-0a1b2-state", full),
              HasSubstr("or name less storage in state.volumeClaimTemplate of a new job"));
}

TEST_F(OperatorPlanCures, AQuotaThatWantsAmountsNamesTheFields) {
  EXPECT_EQ(OfQuota(kNodePod, "failed quota: q: must specify limits.cpu for: runtime,worker"),
            "; write spec.resources.limits.cpu, while the job is suspended");
  EXPECT_EQ(OfQuota(kCoordinatorPod,
                    "failed quota: q: must specify cpu for: coordinator; limits.memory for: "
                    "coordinator; requests.memory for: coordinator"),
            "; write spec.coordinator.resources.requests.cpu, "
            "spec.coordinator.resources.limits.memory and "
            "spec.coordinator.resources.requests.memory, in a new job");
}

TEST_F(OperatorPlanCures, AContainerOfTheTemplateIsNamed) {
  EXPECT_EQ(OfQuota(kNodePod,
                    "failed quota: q: must specify limits.cpu for: proxy,runtime,worker; "
                    "limits.memory for: proxy"),
            "; write spec.resources.limits.cpu and the resources of container proxy in "
            "podTemplate, while the job is suspended");
  EXPECT_EQ(OfQuota(kNodePod, "failed quota: q: must specify memory for: proxy"),
            "; write the resources of container proxy in podTemplate, while the job is suspended");
}

TEST_F(OperatorPlanCures, AJobThatIsCalledLikeANodeHasACoordinatorAllTheSame) {
  world_.object["metadata"]["name"] = "a-coordinator-node-1";
  const char* const wanted = "failed quota: q: must specify limits.cpu for: x";
  EXPECT_THAT(OfQuota("pods/a-coordinator-node-1-0a1b2-node-0-1", wanted),
              HasSubstr("while the job is suspended"));
  EXPECT_THAT(OfQuota("pods/a-coordinator-node-1-0a1b2-coordinator-1", wanted),
              HasSubstr("in a new job"));
}

TEST_F(OperatorPlanCures, ALimitRangesBoundsAreToldWithTheField) {
  EXPECT_EQ(OfLimitRange(kNodePod,
                         "pods \"x\" is forbidden: maximum memory usage per Container is 32Mi, but "
                         "request is 64Mi"),
            "; a LimitRange of the namespace wants memory at most 32Mi: write so in "
            "spec.resources, while the job is suspended");
  EXPECT_EQ(
      OfLimitRange(kCoordinatorPod,
                   "pods \"x\" is forbidden: [maximum memory usage per Container is 32Mi, but "
                   "limit is 512Mi, maximum memory usage per Container is 32Mi, but request is "
                   "128Mi, minimum cpu usage per Pod is 1500m.  No request is specified]"),
      "; a LimitRange of the namespace wants memory at most 32Mi and cpu at least 1500m: write so "
      "in spec.coordinator.resources, in a new job");
  EXPECT_EQ(OfLimitRange(kNodePod,
                         "pods \"x\" is forbidden: cpu max limit to request ratio per Container is "
                         "2, but provided ratio is 4.000000"),
            "; a LimitRange of the namespace wants a limit of cpu of at most 2 times its request: "
            "write so in spec.resources, while the job is suspended");
  EXPECT_EQ(OfLimitRange("persistentvolumeclaims/digits-0a1b2-state",
                         "persistentvolumeclaims \"x\" is forbidden: minimum storage usage per "
                         "PersistentVolumeClaim is 20Gi, but request is 10Gi"),
            "; a LimitRange of the namespace wants storage at least 20Gi: write so in "
            "spec.state.volumeClaimTemplate.spec.resources, in a new job");
}

TEST_F(OperatorPlanCures, ALimitThatALimitRangeGivesIsToldApartFromTheJobsOwn) {
  const std::string above =
      "Pod \"x\" is invalid: [spec.containers[0].resources.requests: Invalid value: \"64Mi\": must "
      "be less than or equal to memory limit of 32Mi, spec.initContainers[0].resources.requests: "
      "Invalid value: \"64Mi\": must be less than or equal to memory limit of 32Mi]";
  EXPECT_EQ(OfLimitRange(kNodePod, above),
            "; the job names no such limit, and a LimitRange of the namespace gives it: lower "
            "spec.resources.requests.memory to 32Mi, or write spec.resources.limits.memory, while "
            "the job is suspended");
  world_.spec()["resources"] = {{"requests", {{"memory", "64Mi"}}},
                                {"limits", {{"memory", "32Mi"}}}};
  EXPECT_EQ(
      OfLimitRange(kNodePod, above),
      "; lower spec.resources.requests.memory to 32Mi, or raise spec.resources.limits.memory, "
      "while the job is suspended");
}

TEST_F(OperatorPlanCures, OtherRefusalsHaveNoSuchCure) {
  for (const char* message :
       {"pods \"x\" is forbidden: error looking up service account default/runner",
        "admission webhook \"maximum.example\" denied the request: the maximum is reached",
        "Pod \"x\" is invalid: spec.containers[1].resources.requests: Invalid value: \"1\": must "
        "be "
        "less than or equal to cpu limit of 500m",
        "maximum ", "minimum  usage per  is , but"}) {
    EXPECT_EQ(OfLimitRange(kNodePod, message), "") << message;
  }
  EXPECT_EQ(OfLimitRange("services/x", "maximum memory usage per Pod is 1Gi, but limit is 2Gi"),
            "");
}

TEST_F(OperatorPlanCures, ARefusedPodIsToldWithItsCure) {
  world_.refuse["pods/digits-0a1b2-node-"] =
      Refused("", "maximum cpu usage per Container is 500m, but limit is 1");
  world_.Turn();
  world_.Turn();
  EXPECT_EQ(world_.Reason("NodesReady"), "Forbidden");
  EXPECT_THAT(world_.Message("NodesReady"), HasSubstr("cpu at most 500m: write so in spec.res"));
  EXPECT_FALSE(world_.Status().Is("Stalled"));
  world_.refuse["pods/digits-0a1b2-node-"] =
      Refused("",
              "spec.containers[0].resources.requests: Invalid value: \"1\": must be less than "
              "or equal to cpu limit of 500m");
  world_.refuse["pods/digits-0a1b2-node-"].status = 422;
  world_.TurnIn(seconds(5));
  world_.TurnIn(seconds(1));
  EXPECT_EQ(world_.Reason("NodesReady"), "InvalidPodTemplate");
  EXPECT_THAT(world_.Message("NodesReady"),
              testing::AllOf(HasSubstr("lower spec.resources.requests.cpu to 500m"),
                             Not(HasSubstr("fix podTemplate"))));
  EXPECT_TRUE(world_.Status().Is("Stalled"));
}

TEST_F(OperatorPlanCures, AnImageIsCuredByTheFieldThatNamesIt) {
  EXPECT_EQ(
      OfImage(false, "Back-off pulling image \"registry.example/digits:1\""),
      "; push that image, and the job goes on by itself, or correct spec.environment.image in "
      "a new job; where the registry asks who pulls, name a Secret with its password in "
      "spec.environment.imagePullSecrets");
  EXPECT_EQ(OfImage(false, "couldn't parse image name \"Digits\": invalid reference format"),
            "; correct spec.environment.image in a new job");
  EXPECT_EQ(OfImage(false, "dial tcp: lookup registry.example: no such host"),
            "; that host does not reach the registry that spec.environment.image names");
  EXPECT_THAT(OfImage(false, "Container image \"x\" is not present with pull policy of Never"),
              testing::StartsWith("; spec.environment.imagePullPolicy is Never"));
  EXPECT_THAT(OfImage(true, "not found"), HasSubstr("chart corrects its runtimeImage"));
  world_.spec()["podTemplate"] = nlohmann::json::parse(
      R"({"spec": {"containers": [{"name": "proxy", "image": "p"}, {"name": "worker"}]}})");
  EXPECT_THAT(OfImage(false, "not found"), HasSubstr("correct spec.environment.image"));
  world_.spec()["podTemplate"]["spec"]["containers"][1]["image"] = "other";
  EXPECT_THAT(OfImage(false, "not found"),
              HasSubstr("correct the image of container worker in spec.podTemplate in a new job"));
}

TEST_F(OperatorPlanCures, APodWithoutAHostIsCuredByWhatItAsksFor) {
  EXPECT_EQ(OfUnschedulable(PodRole::kNode,
                            "1 Insufficient cpu, 1 node(s) had untolerated taint {a: b}, 2 "
                            "Insufficient memory. preemption: 0/3 nodes are available: 2 No "
                            "preemption victims found, 1 Insufficient cpu."),
            "; lower cpu and memory of spec.resources while the job is suspended or add hosts");
  EXPECT_EQ(OfUnschedulable(PodRole::kCoordinator, "3 Insufficient cpu."),
            "; lower cpu of spec.coordinator.resources in a new job or add hosts");
  EXPECT_EQ(OfUnschedulable(PodRole::kNode, "3 node(s) had untolerated taint(s)."),
            "; add tolerations to spec.podTemplate or add hosts");
  EXPECT_EQ(
      OfUnschedulable(PodRole::kNode, "3 node(s) didn't match Pod's node affinity/selector."),
      "; correct nodeSelector, affinity and topologySpreadConstraints in spec.podTemplate or add "
      "hosts");
  EXPECT_EQ(
      OfUnschedulable(PodRole::kNode, "3 node(s) didn't match PersistentVolume's node affinity."),
      "; make room on the hosts where its volumes can be used or add hosts");
  EXPECT_EQ(
      OfUnschedulable(PodRole::kNode,
                      "1 Insufficient nvidia.com/gpu, 2 node(s) were unschedulable."),
      "; lower nvidia.com/gpu of spec.resources while the job is suspended, kubectl uncordon a "
      "host or add hosts");
  EXPECT_EQ(OfUnschedulable(PodRole::kNode, "3 Too many pods."), "; add hosts");
  EXPECT_EQ(OfUnschedulable(PodRole::kNode, "something new"), "");
}

TEST_F(OperatorPlanCures, ASelectorIsNoMatterOfAVolumeForOneHost) {
  world_.there.erase({FactKind::kClaim, "results"});
  world_.AddClaim("results", "ReadWriteOnce");
  world_.Turn();
  world_.Pod("node-0-1").unschedulable = "3 node(s) didn't match Pod's node affinity/selector.";
  world_.TurnIn(seconds(1));
  EXPECT_EQ(world_.Reason("NodesReady"), "Unschedulable");
  EXPECT_THAT(world_.Message("NodesReady"), HasSubstr("correct nodeSelector"));
}

}  // namespace
}  // namespace parallelrun::operators
