// Claims without a volume: their own events say why, and the job says it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/operator/plan/world.h"

namespace parallelrun::operators {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr char kUid[] = "claim-1";
constexpr char kUnbound[] =
    "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims.";
constexpr char kNoClass[] = "storageclass.storage.k8s.io \"nosuch\" not found";

class OperatorPlanClaims : public testing::Test {
 protected:
  OperatorPlanClaims() {
    Fact& claim = world_.there[{FactKind::kClaim, "results"}];
    claim.phase = "Pending";
    claim.uid = kUid;
  }
  void Say(const std::string& reason, const std::string& message, bool warning) {
    world_.there[{FactKind::kClaimEvents, kUid}].events.push_back(
        {reason, message, warning, world_.now});
  }
  void Unschedulable(const std::string& message) {
    for (auto& [name, pod] : world_.pods) pod.unschedulable = message;
  }
  bool Warned() const {
    return std::any_of(world_.events.begin(), world_.events.end(), [](const EventToEmit& event) {
      return event.warning && event.reason == "VolumeNotBound";
    });
  }
  bool Asks() const {
    const auto& facts = world_.facts;
    return std::any_of(facts.begin(), facts.end(),
                       [](const auto& one) { return one.first.kind == FactKind::kClaimEvents; });
  }

  PlanWorld world_;
};

TEST_F(OperatorPlanClaims, AClassThatIsMissingStallsTheJobUntilItIsThere) {
  Say("ProvisioningFailed", kNoClass, true);
  world_.Turn();
  Unschedulable(kUnbound);
  world_.TurnIn(seconds(1));
  EXPECT_EQ(world_.Reason("NodesReady"), "VolumeNotBound");
  EXPECT_FALSE(world_.Status().Is("Stalled")) << "a new volume needs a while";
  EXPECT_FALSE(Warned());
  world_.TurnIn(seconds(5));
  EXPECT_EQ(world_.Reason("NodesReady"), "VolumeNotBound");
  EXPECT_THAT(world_.Message("NodesReady"),
              StartsWith("PersistentVolumeClaim results (spec.volumes: out) has no volume: "
                         "storageclass.storage.k8s.io \"nosuch\" not found; create that "
                         "StorageClass, and the job goes on by itself, or have a new claim name "
                         "one that is there (kubectl get storageclass)"));
  EXPECT_TRUE(world_.Status().Is("Stalled"));
  EXPECT_TRUE(Warned()) << "also where the reason is that of a moment ago";
  EXPECT_EQ(world_.Status().phase, "Starting") << "it ends no job";

  world_.there[{FactKind::kClaim, "results"}].phase = "Bound";
  world_.TurnIn(seconds(16));
  EXPECT_FALSE(world_.Status().Is("Stalled"));
  EXPECT_THAT(world_.Message("NodesReady"), Not(HasSubstr("nosuch")));
  world_.StartAll();
  Unschedulable("");
  world_.TurnIn(seconds(1));
  EXPECT_EQ(world_.Reason("NodesReady"), "AllReady");
}

TEST_F(OperatorPlanClaims, AVolumeForTheFirstPodThatCannotBeMadeIsToldThoughTheSchedulerIsSilent) {
  Say("WaitForFirstConsumer", "waiting for first consumer to be created before binding", false);
  Say("ProvisioningFailed",
      "failed to provision volume with StorageClass \"standard\": NodePath only supports "
      "ReadWriteOnce and ReadWriteOncePod (1.22+) access modes",
      true);
  world_.Turn();
  const Plan plan = world_.TurnIn(seconds(1));
  ASSERT_TRUE(plan.wake);
  EXPECT_LE(*plan.wake, world_.now + seconds(4));
  world_.TurnIn(seconds(4));
  EXPECT_EQ(world_.Reason("NodesReady"), "VolumeNotBound");
  EXPECT_THAT(world_.Message("NodesReady"),
              AllOf(HasSubstr("NodePath only supports ReadWriteOnce"),
                    HasSubstr("its class makes no volumes that several hosts can mount: name "
                              "another class, or use a ReadWriteOnce claim")));
  EXPECT_TRUE(world_.Status().Is("Stalled"));
}

TEST_F(OperatorPlanClaims, AClusterWithoutADefaultClassIsToldThoughKubernetesWarnsOfNothing) {
  Say("FailedBinding", "no persistent volumes available for this claim and no storage class is set",
      false);
  world_.Turn();
  Unschedulable(kUnbound);
  world_.TurnIn(seconds(6));
  EXPECT_THAT(world_.Message("NodesReady"), HasSubstr("the cluster has no default StorageClass"));
  EXPECT_TRUE(world_.Status().Is("Stalled"));
  EXPECT_TRUE(Warned());
}

TEST_F(OperatorPlanClaims, TheClaimThatTheOperatorMadeIsCuredByItsTemplate) {
  world_.spec()["stores"] = nlohmann::json::parse(R"([{"name": "photos", "url": "s3://photos"}])");
  world_.spec()["output"] = {{"store", "photos"}, {"path", "scores"}};
  world_.spec()["state"] = nlohmann::json::parse(
      R"({"volumeClaimTemplate": {"spec": {"resources": {"requests": {"storage": "1Gi"}}}}})");
  world_.there[{FactKind::kClaim, "results"}].phase = "Bound";
  world_.Turn();
  Fact& state = world_.there.at({FactKind::kClaim, "digits-0a1b2-state"});
  state.phase = "Pending";
  state.uid = kUid;
  Say("ProvisioningFailed", kNoClass, true);
  Unschedulable(kUnbound);
  world_.TurnIn(std::chrono::minutes(11));  // what the operator made is read again seldom
  Say("ProvisioningFailed", kNoClass, true);
  world_.TurnIn(seconds(31));
  EXPECT_THAT(world_.Message("NodesReady"),
              AllOf(HasSubstr("PersistentVolumeClaim digits-0a1b2-state"),
                    HasSubstr("state.volumeClaimTemplate.spec.storageClassName of a new job")));
}

TEST_F(OperatorPlanClaims, AVolumeThatIsBeingMadeIsNoMistake) {
  Say("ExternalProvisioning", "Waiting for a volume to be created by the external provisioner x",
      false);
  world_.Turn();
  Unschedulable(kUnbound);
  world_.TurnIn(seconds(6));
  EXPECT_EQ(world_.Reason("NodesReady"), "VolumeNotBound");
  EXPECT_THAT(world_.Message("NodesReady"), HasSubstr("results (spec.volumes: out) has no volume: "
                                                      "Waiting for a volume to be created"));
  EXPECT_FALSE(world_.Status().Is("Stalled"));
  EXPECT_FALSE(Warned());
}

TEST_F(OperatorPlanClaims, AFailureThatNobodyTellsAnyMoreIsOver) {
  Say("ProvisioningFailed", kNoClass, true);
  world_.now += std::chrono::minutes(11);
  world_.Turn();
  Unschedulable(kUnbound);
  world_.TurnIn(seconds(6));
  EXPECT_TRUE(Asks());
  EXPECT_THAT(world_.Message("NodesReady"), Not(HasSubstr("nosuch")));
  EXPECT_FALSE(world_.Status().Is("Stalled"));
}

TEST_F(OperatorPlanClaims, APodThatWaitsForSomethingElseReadsNoEventsOfClaims) {
  Say("ProvisioningFailed", kNoClass, true);
  world_.Turn();
  Unschedulable("0/3 nodes are available: 3 Insufficient nvidia.com/gpu.");
  world_.TurnIn(seconds(6));
  EXPECT_FALSE(Asks());
  world_.StartAll();
  Unschedulable("");
  world_.TurnIn(seconds(6));
  EXPECT_FALSE(Asks());
}

// The reconciler forgets what a plan does not ask for.
TEST_F(OperatorPlanClaims, WhatIsKnownOfAClaimIsKeptWhilePodsWait) {
  world_.Turn();
  const auto wanted = [](const Plan& plan) {
    std::set<std::string> names;
    for (const Need& need : plan.needs) {
      if (need.key.kind == FactKind::kClaim) names.insert(need.key.name);
    }
    return names;
  };
  const std::set<std::string> both = {"digits", "results"};
  EXPECT_EQ(wanted(world_.TurnIn(seconds(1))), both);
  EXPECT_EQ(wanted(world_.TurnIn(seconds(6))), both);
  world_.StartAll();
  EXPECT_EQ(wanted(world_.TurnIn(seconds(1))), std::set<std::string>());
}

TEST(OperatorClaims, AFactOfAClaimHasItsPhase) {
  const nlohmann::json claim = {{"metadata", {{"uid", "u"}}}, {"status", {{"phase", "Pending"}}}};
  EXPECT_EQ(DigestFact(claim, WallTime{}).phase, "Pending");
  EXPECT_EQ(DigestFact(nlohmann::json::object(), WallTime{}).phase, "");
}

}  // namespace
}  // namespace parallelrun::operators
