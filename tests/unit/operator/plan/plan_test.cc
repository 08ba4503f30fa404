// The life of a job as the operator drives it.
#include "operator/plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/object_names.h"
#include "tests/unit/operator/plan/world.h"

namespace parallelrun::operators {
namespace {

using nlohmann::json;
using testing::HasSubstr;

TEST(OperatorPlan, AJobStartsWithCoordinatorNodesAndService) {
  PlanWorld world;
  world.Turn();
  EXPECT_TRUE(world.Has("coordinator-1"));
  EXPECT_TRUE(world.Has("node-0-1"));
  EXPECT_TRUE(world.Has("node-1-1"));
  EXPECT_EQ(world.Live(), 3);
  EXPECT_EQ(world.Did(Action::Kind::kCreate, "services"), 1);
  EXPECT_EQ(world.Did(Action::Kind::kSnapshotCode), 1);
  EXPECT_EQ(world.Status().phase, "Starting");
  EXPECT_EQ(world.Status().effective.code_digest.size(), 16U);
  EXPECT_EQ(world.Told("Started"), 1);
  // Access comes before the first pod.
  for (const Action& action : world.done) {
    if (action.kind == Action::Kind::kEnsureAccess) break;
    EXPECT_NE(action.resource, "pods");
  }
}

TEST(OperatorPlan, AllConditionsAreThereFromTheFirstVisit) {
  PlanWorld world;
  const Plan plan = world.Turn(false);
  for (const char* type : kConditionTypes) {
    ASSERT_NE(plan.status.Find(type), nullptr) << type;
    EXPECT_FALSE(plan.status.Find(type)->reason.empty()) << type;
  }
}

std::string WithoutAMessage(const PlanWorld& world) {
  std::string types;
  for (const Condition& condition : world.Status().conditions) {
    if (condition.message.empty()) types += condition.type + " (" + condition.reason + ") ";
  }
  return types;
}

TEST(OperatorPlan, NoConditionIsWithoutAMessageInAnyStateOfAJob) {
  PlanWorld world;
  world.Turn();
  EXPECT_EQ(WithoutAMessage(world), "");
  world.StartAll();
  world.TurnIn(seconds(1));
  world.Say(PlanWorld::Progress("Running", 1, 0, 100));
  world.TurnIn(seconds(11));
  EXPECT_EQ(WithoutAMessage(world), "");
  EXPECT_EQ(world.Message("Stalled"), "Nobody has to change anything.");
  world.Edit("suspend", true);
  world.Turn();
  EXPECT_EQ(WithoutAMessage(world), "");
  world.Reap();
  world.TurnIn(seconds(1));
  world.Reap();
  world.TurnIn(seconds(1));
  ASSERT_TRUE(world.Status().Is("Suspended"));
  EXPECT_EQ(WithoutAMessage(world), "");
  EXPECT_EQ(world.Message("Reconciling"), "spec.suspend is true, and no pod of the job is left.");
  world.Edit("suspend", false);
  world.Edit("cancel", true);
  world.Turn();
  EXPECT_EQ(WithoutAMessage(world), "");
  world.TurnIn(seconds(1));
  ASSERT_TRUE(world.Status().Is("Failed"));
  EXPECT_EQ(WithoutAMessage(world), "");

  PlanWorld invalid;
  invalid.spec().erase("entryScript");
  invalid.Turn();
  EXPECT_EQ(WithoutAMessage(invalid), "");
}

TEST(OperatorPlan, AConditionOfASuccessSaysNothingOfItemsThatWereLost) {
  PlanWorld world;
  world.RunJob();
  json progress = PlanWorld::Progress("Succeeded", 97, 3, 100);
  progress["verdict"] = {{"outcome", "Succeeded"}, {"reason", ""}, {"message", ""}};
  world.Say(progress);
  world.TurnIn(seconds(1));
  world.TurnIn(seconds(1));
  ASSERT_TRUE(world.Status().Is("Complete"));
  EXPECT_EQ(WithoutAMessage(world), "");
  EXPECT_EQ(world.Message("Failed"), "the job has succeeded");
  EXPECT_EQ(world.Message("Stalled"), "the job is over");
}

Rival RivalThat(bool begun, const char* created, bool waits = false) {
  return {"default", "other", "0a1b2c3d-0000-4000-8000-000000000009", PlanWorld::At(created),
          begun,     waits};
}

TEST(OperatorPlan, AJobWaitsForTheOneThatHasItsOutput) {
  for (const Rival& rival :
       {RivalThat(true, "2026-11-21T09:30:00Z"), RivalThat(true, "2026-11-21T09:30:00Z", true),
        RivalThat(false, "2026-11-21T08:00:00Z")}) {
    PlanWorld world;
    world.rivals = {rival};
    const Plan plan = world.Turn();
    EXPECT_EQ(world.Live(), 0);
    EXPECT_EQ(world.Reason("NodesReady"), "OutputTaken");
    EXPECT_THAT(world.Message("NodesReady"), HasSubstr("job default/other"));
    ASSERT_TRUE(plan.wake);
    world.rivals.clear();
    world.TurnIn(seconds(5));
    EXPECT_EQ(world.Live(), 3);
  }
}

TEST(OperatorPlan, WhatWillComeOfAJobThatWaitsForAnOutputIsToldAtOnce) {
  const auto told = [](const char* if_exists) {
    PlanWorld world;
    if (if_exists != nullptr) world.spec()["output"]["ifExists"] = if_exists;
    world.rivals = {RivalThat(true, "2026-11-21T09:30:00Z")};
    world.Turn();
    return world.Message("NodesReady");
  };
  const auto fails = HasSubstr("this job starts only if that one leaves no output, and fails");
  EXPECT_THAT(told(nullptr), fails);
  EXPECT_THAT(told("Fail"), fails);
  EXPECT_THAT(told("Overwrite"), HasSubstr("this job starts when it is, and replaces that output"));
  for (const char* continues : {"Resume", "RetryFailed"}) {
    EXPECT_THAT(told(continues),
                HasSubstr("fails if that output is not of a run in its own state"));
  }
}

TEST(OperatorPlan, AJobThatWouldRatherFailDoesNotWaitForAnOutput) {
  PlanWorld world;
  world.spec()["onOutputTaken"] = "Fail";
  world.rivals = {RivalThat(true, "2026-11-21T09:30:00Z")};
  world.Turn();
  EXPECT_EQ(world.Live(), 0);
  ASSERT_TRUE(world.Status().Is("Failed"));
  EXPECT_EQ(world.Reason("Failed"), "OutputTaken");
  EXPECT_THAT(world.Message("Failed"),
              HasSubstr("job default/other publishes to the same output (volume out, path "));
  EXPECT_THAT(world.Message("Failed"), HasSubstr("onOutputTaken is Fail"));
  EXPECT_EQ(world.Told("Failed"), 1);
  world.rivals.clear();
  world.TurnIn(seconds(5));
  EXPECT_EQ(world.Live(), 0) << "what has failed stays failed";
}

TEST(OperatorPlan, AJobThatWouldRatherFailStartsWhereTheOutputIsItsOwn) {
  const Rival older = RivalThat(false, "2026-11-21T08:00:00Z");
  const Rival younger = RivalThat(false, "2026-11-21T09:30:00Z");
  {
    PlanWorld world;
    world.spec()["onOutputTaken"] = "Fail";
    world.rivals = {younger};
    world.Turn();
    EXPECT_EQ(world.Live(), 3);
    world.rivals = {RivalThat(true, "2026-11-21T08:00:00Z")};
    world.TurnIn(seconds(1));
    EXPECT_EQ(world.Live(), 3) << "it has begun";
    EXPECT_FALSE(world.Status().Is("FailureTarget"));
  }
  PlanWorld held;
  held.spec()["onOutputTaken"] = "Fail";
  held.spec()["suspend"] = true;
  held.rivals = {older};
  held.Turn();
  EXPECT_FALSE(held.Status().Is("FailureTarget")) << "it asks for nothing yet";
  held.rivals.clear();
  held.spec()["suspend"] = false;
  held.TurnIn(seconds(1));
  EXPECT_EQ(held.Live(), 3);
}

TEST(OperatorPlan, AJobDoesNotWaitForOneThatComesAfterIt) {
  for (const Rival& rival :
       {RivalThat(false, "2026-11-21T09:30:00Z"), RivalThat(false, "2026-11-21T08:00:00Z", true)}) {
    PlanWorld world;
    world.rivals = {rival};
    world.Turn();
    EXPECT_EQ(world.Live(), 3);
  }
  PlanWorld running;
  running.RunJob();
  running.rivals = {RivalThat(true, "2026-11-21T08:00:00Z")};
  running.TurnIn(seconds(1));
  EXPECT_EQ(running.Live(), 3);
}

// Of two jobs exactly one goes first.
TEST(OperatorPlan, RivalsAreThoseWithTheSameOutputThatAreNotOver) {
  PlanWorld world;
  const ObservedJob job = ReadObservedJob(world.object);
  const auto address = [](const nlohmann::json& object) {
    return ReadObservedJob(object).output_address;
  };
  nlohmann::json other = world.object;
  other["metadata"]["name"] = "other";
  EXPECT_NE(address(other), job.output_address) << "its default path has its name";
  other["spec"]["output"]["path"] = "digits/output";
  EXPECT_EQ(address(other), job.output_address);
  other["spec"]["volumes"][1]["name"] = other["spec"]["output"]["volume"] = "renamed";
  other["spec"]["volumes"][1]["persistentVolumeClaim"]["readOnly"] = false;
  EXPECT_EQ(address(other), job.output_address);
  other["spec"]["output"]["fileName"] = "rows.txt";
  EXPECT_NE(address(other), job.output_address);
  other["spec"]["output"].erase("fileName");
  other["metadata"]["namespace"] = "elsewhere";
  EXPECT_NE(address(other), job.output_address);

  ObservedJob over = job;
  EXPECT_TRUE(RivalOf(over));
  SetCondition(over.status, "Failed", Truth::kTrue, "X", "", 1, world.now);
  EXPECT_FALSE(RivalOf(over));
  ObservedJob deleted = job;
  deleted.deleting = true;
  EXPECT_FALSE(RivalOf(deleted));
}

TEST(OperatorPlan, AnOutputThatIsNotPublishedFailsTheJobInWords) {
  PlanWorld world;
  world.RunJob();
  world.End(world.Pod("coordinator-1"), 6, "",
            R"({"progress": {"state": "Finalizing", "miniBatches": {}}, "ended": "move it away"})");
  world.TurnIn(seconds(1));
  EXPECT_EQ(world.Reason("FailureTarget"), "OutputNotPublished");
  EXPECT_EQ(world.Message("FailureTarget"), "move it away");
}

TEST(OperatorPlan, NothingIsDoneTwice) {
  PlanWorld world;
  world.RunJob();
  world.done.clear();
  const size_t events = world.events.size();
  for (int i = 0; i < 5; ++i) {
    const Plan plan = world.TurnIn(seconds(1));
    EXPECT_FALSE(plan.write_status);
  }
  EXPECT_EQ(world.Did(Action::Kind::kCreate), 0);
  EXPECT_EQ(world.Did(Action::Kind::kApply), 0);
  EXPECT_EQ(world.Did(Action::Kind::kDelete), 0);
  EXPECT_EQ(world.Did(Action::Kind::kControl), 0);
  EXPECT_EQ(world.events.size(), events);
}

TEST(OperatorPlan, EachFactIsReadOnce) {
  PlanWorld world;
  const Observed seen = world.See();
  const std::vector<FactKey> missing =
      MissingFacts(MakePlan(seen, world.options, world.now), seen, world.now);
  EXPECT_EQ(missing.size(), 2U) << "each claim, of which two things are asked";
  EXPECT_EQ(std::set<FactKey>(missing.begin(), missing.end()).size(), missing.size());
}

TEST(OperatorPlan, AJobWithoutAStatusIsStartedWithoutALookAtItsObjects) {
  PlanWorld world;
  world.options.network_policies = true;
  for (int round = 0; round < 2; ++round) {  // the code, then everything else
    const Observed seen = world.See();
    const Plan plan = MakePlan(seen, world.options, world.now);
    for (const FactKey& key : MissingFacts(plan, seen, world.now)) {
      EXPECT_EQ(key.kind, FactKind::kClaim) << key.name;
    }
    world.Turn(false);
  }
  EXPECT_EQ(world.Live(), 3);
  EXPECT_EQ(world.Did(Action::Kind::kCreate, "services"), 1);
  EXPECT_EQ(world.Did(Action::Kind::kCreate, "networkpolicies"), 1);
  // The pods stand together, behind all else: they go at the same time.
  const std::vector<Action>& done = world.done;
  ASSERT_GE(done.size(), 3U);
  for (size_t i = done.size() - 3; i < done.size(); ++i) EXPECT_EQ(done[i].resource, "pods");
}

TEST(OperatorPlan, InATerminatingNamespaceNothingIsTriedForAMinute) {
  PlanWorld world;
  ApplyFailure failure;
  failure.object = "configmaps/digits-code";
  failure.status = 403;
  failure.reason = kNamespaceTerminating;
  failure.message = "unable to create new content in namespace default";
  failure.at = world.now;
  world.failures[failure.object] = failure;
  Plan plan = world.Turn();
  EXPECT_TRUE(world.done.empty());
  EXPECT_EQ(world.Reason("NodesReady"), "NamespaceTerminating");
  EXPECT_EQ(world.Reason("Stalled"), "NamespaceTerminating");
  ASSERT_TRUE(plan.wake);
  EXPECT_EQ(*plan.wake, world.now + seconds(60));
  world.TurnIn(seconds(59));
  EXPECT_TRUE(world.done.empty());
  EXPECT_EQ(world.Told("NamespaceTerminating"), 1);
  world.TurnIn(seconds(1));
  EXPECT_FALSE(world.done.empty()) << "it may have been somebody's mistake";
}

TEST(OperatorPlan, AnInvalidJobIsStalledAndMakesNothing) {
  PlanWorld world;
  world.spec()["miniBatchSize"] = "10Mi";
  world.Turn();
  EXPECT_EQ(world.Live(), 0);
  EXPECT_EQ(world.Reason("Accepted"), "Invalid");
  EXPECT_TRUE(world.Status().Is("Stalled"));
  EXPECT_THAT(world.Message("Accepted"), HasSubstr("spec.miniBatchSize"));
  world.TurnIn(seconds(60));
  EXPECT_EQ(world.Told("Invalid"), 1);
}

TEST(OperatorPlan, ADeletedJobAndAForeignOneMakeNothing) {
  PlanWorld world;
  world.object["metadata"]["deletionTimestamp"] = "2026-11-21T09:00:00Z";
  EXPECT_TRUE(world.Look().actions.empty());
  PlanWorld other;
  other.spec()["managedBy"] = "kueue.x-k8s.io/multikueue";
  const Plan plan = other.Look();
  EXPECT_TRUE(plan.actions.empty());
  EXPECT_FALSE(plan.write_status);
}

TEST(OperatorPlan, MissingCodeIsNamedAndMendedByItself) {
  PlanWorld world;
  world.there.erase({FactKind::kConfigMap, "digits-code"});
  Plan plan = world.Turn();
  EXPECT_EQ(world.Live(), 0);
  EXPECT_EQ(world.Reason("NodesReady"), "ConfigMapNotFound");
  EXPECT_THAT(world.Message("NodesReady"), HasSubstr("digits-code"));
  ASSERT_TRUE(plan.wake);
  EXPECT_LE(*plan.wake, world.now + seconds(5));
  world.TurnIn(seconds(5));
  EXPECT_EQ(world.Told("ConfigMapNotFound"), 1);
  world.there[{FactKind::kConfigMap, "digits-code"}] = {};
  world.TurnIn(seconds(5));
  EXPECT_EQ(world.Live(), 3);
}

TEST(OperatorPlan, MissingSecretsAndClaimsAreNamed) {
  PlanWorld world;
  world.spec()["environment"]["env"] = json::parse(
      R"([{"name": "A", "valueFrom": {"secretKeyRef": {"name": "token", "key": "k"}}},
          {"name": "B", "valueFrom": {"secretKeyRef": {"name": "o", "key": "k", "optional": true}}}])");
  world.there.erase({FactKind::kClaim, "results"});
  world.Turn();
  EXPECT_EQ(world.Live(), 0);
  EXPECT_THAT(world.Message("NodesReady"), HasSubstr("Secret token"));
  world.there[{FactKind::kSecret, "token"}] = {};
  world.TurnIn(seconds(5));
  EXPECT_EQ(world.Reason("NodesReady"), "PersistentVolumeClaimNotFound");
  world.AddClaim("results", "ReadWriteMany");
  world.TurnIn(seconds(5));
  EXPECT_EQ(world.Live(), 3);
}

TEST(OperatorPlan, TheSecretOfAStoreIsWaitedFor) {
  PlanWorld world;
  world.spec()["stores"] = json::parse(
      R"([{"name": "photos", "url": "s3://photos", "credentials": {"secretName": "photos-keys"}},
          {"name": "public", "url": "s3://public"}])");
  world.Turn();
  EXPECT_EQ(world.Live(), 0);
  EXPECT_EQ(world.Reason("NodesReady"), "SecretNotFound");
  EXPECT_THAT(world.Message("NodesReady"),
              AllOf(HasSubstr("Secret photos-keys"), HasSubstr("spec.stores: photos")));
  world.there[{FactKind::kSecret, "photos-keys"}] = {};
  world.TurnIn(seconds(5));
  EXPECT_EQ(world.Live(), 3);
}

TEST(OperatorPlan, TheClaimOfTheStateIsMadeWithThePodsAndWaitedForByNobody) {
  PlanWorld world;
  world.spec()["state"] = json::parse(
      R"({"volumeClaimTemplate": {"spec": {"resources": {"requests": {"storage": "1Gi"}}}}})");
  world.Turn();
  EXPECT_EQ(world.Live(), 3);
  const std::string name = api::StateClaimName(world.job().name, world.uid());
  ASSERT_TRUE(world.there.contains({FactKind::kClaim, name}));
  EXPECT_FALSE(world.Status().effective.one_host) << "no node mounts it";
  world.there[{FactKind::kClaim, name}].owner_uid = "another";
  world.facts.clear();
  world.TurnIn(seconds(700));
  EXPECT_EQ(world.Reason("NodesReady"), "NameTaken");
}

TEST(OperatorPlan, AJobOfStoresNeedsNoClaim) {
  PlanWorld world;
  world.spec()["stores"] = json::parse(R"([{"name": "photos", "url": "s3://photos"}])");
  world.spec()["output"] = {{"store", "photos"}, {"path", "scores"}};
  world.spec().erase("logs");
  world.spec().erase("state");
  world.Turn();
  EXPECT_EQ(world.Live(), 3);
  const std::string name = api::StateClaimName(world.job().name, world.uid());
  EXPECT_FALSE(world.there.contains({FactKind::kClaim, name}));
  EXPECT_FALSE(world.Status().effective.one_host);
}

TEST(OperatorPlan, AClaimOfTheCoordinatorAloneLeavesNodesFree) {
  PlanWorld world;
  world.AddClaim("results", "ReadWriteOnce");
  world.spec()["stores"] = json::parse(R"([{"name": "photos", "url": "s3://photos"}])");
  world.spec()["output"] = {{"store", "photos"}, {"path", "scores"}};
  world.spec()["logs"] = {{"volume", "out"}};
  world.spec()["state"] = {{"volume", "out"}};
  world.Turn();
  EXPECT_FALSE(world.Status().effective.one_host);
  EXPECT_EQ(world.Live(), 3);
}

TEST(OperatorPlan, AReadWriteOnceClaimKeepsAllPodsOnOneHost) {
  PlanWorld world;
  world.AddClaim("results", "ReadWriteOnce");
  world.Turn();
  EXPECT_TRUE(world.Status().effective.one_host);
  PodDigest& node = world.Pod("node-1-1");
  node.unschedulable = "0/2 nodes are available: 1 node(s) didn't match pod affinity rules";
  world.TurnIn(seconds(1));
  EXPECT_EQ(world.Reason("NodesReady"), "VolumeNotShared");
  EXPECT_THAT(world.Message("NodesReady"), HasSubstr("ReadWriteMany"));
}

TEST(OperatorPlan, AReadWriteOncePodClaimIsRefused) {
  PlanWorld world;
  world.AddClaim("results", "ReadWriteOncePod");
  world.Turn();
  EXPECT_EQ(world.Live(), 0);
  EXPECT_EQ(world.Reason("NodesReady"), "VolumeNotShared");
  EXPECT_TRUE(world.Status().Is("Stalled"));
  PlanWorld alone;
  alone.AddClaim("results", "ReadWriteOncePod");
  alone.spec()["output"]["mountOnNodes"] = false;
  alone.Turn();
  EXPECT_EQ(alone.Live(), 3);
}

TEST(OperatorPlan, PodsOfAnEarlierJobOfThisNameGoFirst) {
  PlanWorld world;
  PodDigest old;
  old.name = "digits-ffff0-coordinator-1";
  old.job_uid = "ffff0000";
  old.phase = PodPhase::kRunning;
  world.pods[old.name] = old;
  world.Turn();
  EXPECT_EQ(world.pods.size(), 1U);
  EXPECT_EQ(world.Reason("NodesReady"), "OldPods");
  // Terminating for good on a dead machine: it never blocks.
  world.pods[old.name].deletion = world.now - seconds(31);
  world.TurnIn(seconds(5));
  EXPECT_EQ(world.Live(), 3);
}

TEST(OperatorPlan, SuspendedJobsHaveNoPodsAndAStoppedClock) {
  PlanWorld world;
  world.RunJob();
  world.Edit("suspend", true);
  world.Turn();
  EXPECT_EQ(world.Pod("node-0-1").Live(), false);
  EXPECT_TRUE(world.Pod("coordinator-1").Live()) << "nodes hand back their work first";
  EXPECT_FALSE(world.Status().Is("Suspended"));
  world.Reap();
  world.Turn();
  world.Reap();
  world.Turn();
  EXPECT_TRUE(world.Status().Is("Suspended"));
  EXPECT_EQ(world.Status().phase, "Suspended");
  EXPECT_FALSE(world.Status().start_time);
  EXPECT_EQ(world.Status().observed_generation, 2);
  EXPECT_EQ(world.Status().nodes.disruptions, 0) << "our own deletes are no disruptions";

  world.Edit("suspend", false);
  world.TurnIn(seconds(1000));
  EXPECT_EQ(world.Live(), 3);
  EXPECT_TRUE(world.Has("coordinator-2")) << "a name is never used again";
  EXPECT_EQ(*world.Status().start_time, world.now);
  EXPECT_FALSE(world.Status().Is("Suspended"));
  EXPECT_EQ(world.Status().nodes.restarts + world.Status().nodes.disruptions, 0);
}

TEST(OperatorPlan, AStuckPodDoesNotHoldUpSuspension) {
  PlanWorld world;
  world.RunJob();
  world.Edit("suspend", true);
  world.Turn();
  world.TurnIn(seconds(91));
  world.TurnIn(seconds(61));
  world.TurnIn(seconds(91));
  EXPECT_TRUE(world.Status().Is("Suspended"));
}

TEST(OperatorPlan, AQueuedJobWaitsUntilItIsAdmitted) {
  PlanWorld world;
  world.object["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "gpu";
  world.Turn();
  EXPECT_EQ(world.Live(), 0);
  EXPECT_EQ(world.Reason("Suspended"), "Queued");
  EXPECT_THAT(world.Message("Suspended"),
              testing::AllOf(HasSubstr("queue gpu"), HasSubstr("does not speak to Kueue yet"),
                             HasSubstr("Remove its label kueue.x-k8s.io/queue-name")));
  ASSERT_EQ(world.Told("Queued"), 1);
  EXPECT_TRUE(world.events.back().warning) << "nothing admits it by itself";
  world.TurnIn(seconds(1000));
  EXPECT_EQ(world.Told("Queued"), 1);
  world.object["metadata"]["annotations"]["parallelrun.dev/admitted"] = "true";
  world.Turn();
  EXPECT_EQ(world.Live(), 3);
}

TEST(OperatorPlan, AJobWhoseQueueIsTakenAwayStarts) {
  PlanWorld world;
  world.object["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "gpu";
  world.Turn();
  world.object["metadata"]["labels"].erase("kueue.x-k8s.io/queue-name");
  world.TurnIn(seconds(1));
  EXPECT_EQ(world.Live(), 3);
  EXPECT_FALSE(world.Status().Is("Suspended"));
}

TEST(OperatorPlan, ScaleUpMakesNodesAndScaleDownDrainsThem) {
  PlanWorld world;
  world.RunJob();
  world.Edit("nodeCount", 3);
  world.Turn();
  EXPECT_TRUE(world.Has("node-2-2"));
  EXPECT_EQ(world.Told("Scaled"), 1);
  world.StartAll();
  world.Turn();

  world.Edit("nodeCount", 1);
  world.Turn();
  EXPECT_EQ(world.view.acknowledged->value("nodeCount", 0), 1);
  EXPECT_TRUE(world.Pod("node-1-1").Live()) << "not before it has handed back";
  json progress = PlanWorld::Progress("Running", 5, 0, 100);
  progress["nodes"] = json::parse(R"([{"index": 0, "registered": true},
                                      {"index": 1, "registered": true}])");
  world.now += seconds(1);
  world.Say(progress);
  world.Turn();
  EXPECT_TRUE(world.Pod("node-1-1").Live());
  EXPECT_FALSE(world.Pod("node-2-2").Live());
  progress["nodes"] = json::parse(R"([{"index": 0, "registered": true}])");
  world.Say(progress);
  world.Turn();
  EXPECT_FALSE(world.Pod("node-1-1").Live());
  EXPECT_TRUE(world.Pod("node-0-1").Live());
  EXPECT_EQ(world.Status().nodes.disruptions, 0);
  EXPECT_EQ(world.Status().highest_node_count, 3);
  EXPECT_TRUE(world.missing_pods.empty());
}

TEST(OperatorPlan, ANodeThatDoesNotLeaveIsDeletedAfterTheGrace) {
  PlanWorld world;
  world.RunJob();
  world.Edit("nodeCount", 1);
  json progress = PlanWorld::Progress("Running", 5, 0, 100);
  progress["nodes"] = json::parse(R"([{"index": 1, "registered": true}])");
  world.Turn();
  world.now += seconds(60);
  world.Say(progress);
  world.Turn();
  EXPECT_TRUE(world.Pod("node-1-1").Live());
  world.now += seconds(61);
  world.Say(progress);
  world.Turn();
  EXPECT_FALSE(world.Pod("node-1-1").Live());
}

TEST(OperatorPlan, ObservedGenerationFollowsTheCoordinatorsEcho) {
  PlanWorld world;
  world.RunJob();
  EXPECT_EQ(world.Status().observed_generation, 1);
  world.coordinator_listens = false;
  world.Edit("errorThreshold", 7);
  world.Turn();
  EXPECT_EQ(world.Status().observed_generation, 1);
  world.coordinator_listens = true;
  world.Turn();
  world.Turn();
  EXPECT_EQ(world.view.acknowledged->value("errorThreshold", 0), 7);
  EXPECT_EQ(world.Status().observed_generation, 2);
}

TEST(OperatorPlan, ACoordinatorRestartedInItsPodIsToldAgain) {
  PlanWorld world;
  world.RunJob();
  world.done.clear();
  json progress = PlanWorld::Progress("Running", 5, 0, 100);
  progress["controlGeneration"] = 0;
  world.now += seconds(1);
  world.Say(progress);
  world.Turn();
  EXPECT_EQ(world.Did(Action::Kind::kControl), 1);
}

// A kubelet that has just been started may ask its probes a minute late.
TEST(OperatorPlan, ACoordinatorThatReportsIsToldThoughItsPodIsNotReadyYet) {
  const auto controls = [](PlanWorld& world) {
    world.TurnIn(seconds(1));
    return world.Did(Action::Kind::kControl);
  };
  PlanWorld world;
  world.Turn();
  world.StartAll();
  PodDigest& coordinator = world.Pod("coordinator-1");
  coordinator.ready = coordinator.main.ready = false;
  EXPECT_EQ(controls(world), 0) << "nobody knows whether it serves";
  world.Say(PlanWorld::Progress("Running", 1, 0, 100));
  world.End(world.Pod("node-0-1"), 137, "OOMKilled");
  EXPECT_EQ(controls(world), 1);
  ASSERT_TRUE(world.view.acknowledged);
  EXPECT_EQ(world.view.acknowledged->at("podEnds").size(), 1U);

  // What the one before it reported says nothing about its successor.
  coordinator.deletion = world.now;
  world.Turn();
  world.Start(world.Pod("coordinator-2"));
  world.Pod("coordinator-2").ready = world.Pod("coordinator-2").main.ready = false;
  world.done.clear();
  EXPECT_EQ(controls(world), 0);
}

TEST(OperatorPlan, TheServiceFollowsTheCoordinatorsIncarnation) {
  PlanWorld world;
  world.RunJob();
  world.Pod("coordinator-1").deletion = world.now + seconds(30);
  world.done.clear();
  world.Turn();
  EXPECT_TRUE(world.Has("coordinator-2"));
  ASSERT_EQ(world.Did(Action::Kind::kApply, "services"), 1);
  for (const Action& action : world.done) {
    if (action.kind != Action::Kind::kApply) continue;
    EXPECT_EQ(action.object["spec"]["selector"]["parallelrun.dev/incarnation"], "2");
  }
}

TEST(OperatorPlan, ForeignObjectsUnderOurNamesAreNotTaken) {
  PlanWorld world;
  Fact foreign;
  foreign.owner_uid = "somebody";
  world.there[{FactKind::kConfigMap, "digits-0a1b2-code"}] = foreign;
  world.Turn();
  EXPECT_EQ(world.Live(), 0);
  EXPECT_EQ(world.Reason("NodesReady"), "NameTaken");
  EXPECT_TRUE(world.Status().Is("Stalled"));
}

TEST(OperatorPlan, AnUpgradeDoesNotChangeARunningJobsRuntime) {
  PlanWorld world;
  world.RunJob();
  world.options.runtime_image = "registry.example/runtime@sha256:22";
  world.End(world.Pod("node-0-1"), 1, "Evicted");
  world.Pod("node-0-1").reason = "Evicted";
  world.done.clear();
  world.TurnIn(seconds(20));
  ASSERT_EQ(world.Did(Action::Kind::kCreate, "pods"), 1);
  for (const Action& action : world.done) {
    if (action.kind != Action::Kind::kCreate) continue;
    EXPECT_EQ(action.object["spec"]["initContainers"][0]["image"],
              "registry.example/runtime@sha256:11");
  }
}

TEST(OperatorPlan, AJobKeepsThePortItStartedWith) {
  PlanWorld world;
  world.options.network_policies = true;
  world.RunJob();
  const std::string url = world.Status().url;
  EXPECT_TRUE(url.ends_with(":8443/")) << url;

  world.options.coordinator_port = 9443;
  world.done.clear();
  const Plan plan = world.TurnIn(std::chrono::minutes(11));
  EXPECT_EQ(world.Did(Action::Kind::kApply), 0);
  ASSERT_EQ(world.Did(Action::Kind::kEnsureAccess), 1);
  for (const Action& action : world.done) {
    if (action.kind == Action::Kind::kEnsureAccess) {
      EXPECT_EQ(action.access.coordinator_port, 8443);
    }
  }
  ASSERT_TRUE(plan.pull);
  EXPECT_EQ(plan.pull->port, 8443);
  EXPECT_EQ(world.Status().url, url);
  world.End(world.Pod("coordinator-1"), 137);
  world.TurnIn(std::chrono::minutes(1));
  for (const Action& action : world.done) {
    if (action.resource != "pods" || action.kind != Action::Kind::kCreate) continue;
    if (action.name.find("coordinator") == std::string::npos) continue;
    EXPECT_EQ(action.object["spec"]["containers"][0]["ports"][0]["containerPort"], 8443);
  }
  EXPECT_TRUE(world.Has("coordinator-2"));

  // A job without a port yet takes that of today.
  PlanWorld fresh;
  fresh.options.coordinator_port = 9443;
  fresh.Turn();
  EXPECT_EQ(fresh.Status().effective.coordinator_port, 9443);
}

}  // namespace
}  // namespace parallelrun::operators
