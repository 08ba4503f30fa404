// Names that are never used again, and objects and pods that others delete or take.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/operator/plan/world.h"

namespace parallelrun::operators {
namespace {

using nlohmann::json;

constexpr char kBase[] = "digits-0a1b2";

json Registered(std::initializer_list<int> nodes) {
  json progress = PlanWorld::Progress("Running", 5, 0, 100);
  for (const int node : nodes) {
    progress["nodes"].push_back({{"index", node}, {"registered", true}});
  }
  return progress;
}

const Need* NeedOf(const Plan& plan, FactKind kind) {
  for (const Need& need : plan.needs) {
    if (need.key.kind == kind) return &need;
  }
  return nullptr;
}

TEST(OperatorPlanNames, AForeignCopyOfTheCodeThatGoesAwayIsNoticed) {
  PlanWorld world;
  Fact foreign;
  foreign.owner_uid = "somebody";
  world.there[{FactKind::kConfigMap, "digits-0a1b2-code"}] = foreign;
  const Plan plan = world.Turn();
  EXPECT_EQ(world.Reason("NodesReady"), "NameTaken");
  ASSERT_TRUE(plan.wake);
  EXPECT_LE(*plan.wake, world.now + seconds(5));
  world.there.erase({FactKind::kConfigMap, "digits-0a1b2-code"});
  world.TurnIn(seconds(5));
  EXPECT_EQ(world.Live(), 3);
  EXPECT_NE(world.Reason("NodesReady"), "NameTaken");
}

TEST(OperatorPlanNames, CodeThatChangedWhileItsCopyWasDeletedIsNotRun) {
  PlanWorld world;
  world.RunJob();
  const FactKey copy{FactKind::kConfigMap, std::string(kBase) + "-code"};
  const std::string old = world.code;
  world.code = "def run(x): return 2 * x";
  world.there.erase(copy);
  world.End(world.Pod("node-0-1"), 1);
  for (int i = 0; i < 3; ++i) world.TurnIn(std::chrono::minutes(11));
  EXPECT_EQ(world.Reason("NodesReady"), "CodeChanged");
  EXPECT_TRUE(world.Status().Is("Stalled"));
  EXPECT_FALSE(world.Has("node-0-2"));
  world.code = old;
  world.there.erase(copy);  // as the message asks for
  for (int i = 0; i < 2; ++i) world.TurnIn(std::chrono::minutes(11));
  EXPECT_TRUE(world.Has("node-0-2"));
  EXPECT_FALSE(world.Status().Is("Stalled"));
}

TEST(OperatorPlanNames, ACopyOfTheCodeThatCannotBeReadStopsNoRunningJob) {
  PlanWorld world;
  world.RunJob();
  Fact& copy = world.there[{FactKind::kConfigMap, std::string(kBase) + "-code"}];
  copy.state = Fact::State::kUnreadable;
  copy.error = "GET configmaps default/digits-0a1b2-code: 429: too many requests";
  copy.passing = true;
  world.End(world.Pod("node-0-1"), 1);
  world.TurnIn(std::chrono::minutes(11));
  EXPECT_TRUE(world.Has("node-0-2"));
  world.TurnIn(seconds(5));
  EXPECT_FALSE(world.Status().Is("Stalled"));
  EXPECT_EQ(world.Reason("NodesReady"), "Starting") << "not worth a word";

  copy.passing = false;  // a right was taken away
  world.End(world.Pod("node-1-1"), 1);
  world.TurnIn(std::chrono::minutes(11));
  EXPECT_TRUE(world.Has("node-1-2"));
  EXPECT_FALSE(world.Status().Is("Stalled"));
  EXPECT_EQ(world.Reason("NodesReady"), "Forbidden");
}

TEST(OperatorPlanNames, ACopyOfTheCodeThatCannotBeReadAtTheStartIsReadAgain) {
  PlanWorld world;
  const FactKey key{FactKind::kConfigMap, std::string(kBase) + "-code"};
  Fact& copy = world.there[key];
  copy.state = Fact::State::kUnreadable;
  copy.error = "GET configmaps default/digits-0a1b2-code: 503: try again";
  copy.passing = true;
  const Plan plan = world.Turn();
  EXPECT_EQ(world.Live(), 0);
  EXPECT_EQ(world.Reason("NodesReady"), "ApplyFailed");
  EXPECT_FALSE(world.Status().Is("Stalled"));
  ASSERT_TRUE(plan.wake);
  EXPECT_LE(*plan.wake, world.now + seconds(5));

  copy.passing = false;
  world.TurnIn(seconds(5));
  EXPECT_EQ(world.Reason("NodesReady"), "Forbidden");
  EXPECT_TRUE(world.Status().Is("Stalled"));

  world.there.erase(key);
  world.TurnIn(seconds(5));
  EXPECT_EQ(world.Live(), 3);
  EXPECT_FALSE(world.Status().Is("Stalled"));
}

TEST(OperatorPlanNames, PodsThatVanishWithoutAnEndHaveSuccessorsOfNewNames) {
  PlanWorld world;
  world.RunJob();
  world.pods.erase(std::string(kBase) + "-coordinator-1");
  world.pods.erase(std::string(kBase) + "-node-1-1");
  world.Turn();
  EXPECT_TRUE(world.Has("coordinator-2"));
  EXPECT_FALSE(world.Has("coordinator-1"));
  EXPECT_TRUE(world.Has("node-1-2"));
  EXPECT_FALSE(world.Has("node-1-1"));
  EXPECT_EQ(world.Live(), 3);
}

TEST(OperatorPlanNames, ANodeThatNeverRanIsMadeAgainUnderItsName) {
  PlanWorld world;
  world.Turn();
  world.Start(world.Pod("coordinator-1"));
  world.pods.erase(std::string(kBase) + "-node-1-1");  // as if it were not in view yet
  world.TurnIn(seconds(1));
  EXPECT_TRUE(world.Has("node-1-1"));
  EXPECT_EQ(world.Live(), 3);
}

TEST(OperatorPlanNames, ACoordinatorThatWasSuspendedIsNotRestarted) {
  PlanWorld world;
  world.RunJob();
  world.Pod("coordinator-1").main.restarts = 1;
  world.TurnIn(seconds(1));
  EXPECT_EQ(world.Status().coordinator.restarts, 1);
  world.Edit("suspend", true);
  world.Turn();
  world.Reap();
  world.Turn();
  world.End(world.Pod("coordinator-1"), 3);
  world.Turn();
  world.Reap();
  world.Turn();
  ASSERT_TRUE(world.Status().Is("Suspended"));
  world.Edit("suspend", false);
  world.TurnIn(seconds(10));
  world.TurnIn(seconds(1));
  EXPECT_TRUE(world.Has("coordinator-2"));
  EXPECT_EQ(world.Status().coordinator.incarnation, 2);
  EXPECT_EQ(world.Status().coordinator.restarts, 1);
  EXPECT_EQ(world.Told("CoordinatorRestarted"), 1);
}

TEST(OperatorPlanNames, NorIsOneThatHangsOnADeadMachine) {
  PlanWorld world;
  world.RunJob();
  world.Edit("suspend", true);
  for (int i = 0; i < 4; ++i) world.TurnIn(seconds(91));
  ASSERT_TRUE(world.Status().Is("Suspended"));
  ASSERT_TRUE(world.Has("coordinator-1"));
  world.Edit("suspend", false);
  world.TurnIn(seconds(10));
  world.TurnIn(seconds(1));
  EXPECT_TRUE(world.Has("coordinator-2"));
  EXPECT_EQ(world.Status().coordinator.restarts, 0);
}

TEST(OperatorPlanNames, NorIsOneThatEndsWhileTheJobIsResumed) {
  PlanWorld world;
  world.RunJob();
  world.Edit("suspend", true);
  world.Turn();
  world.Reap();
  world.Turn();
  ASSERT_TRUE(world.Pod("coordinator-1").deletion);
  world.Edit("suspend", false);
  world.Turn();
  world.TurnIn(seconds(1));
  EXPECT_TRUE(world.Has("coordinator-2"));
  EXPECT_EQ(world.Status().coordinator.restarts, 0);
}

TEST(OperatorPlanNames, ACoordinatorThatWasTakenAwayInOrderIsNoFruitlessRestart) {
  PlanWorld world;
  world.RunJob();
  world.End(world.Pod("coordinator-1"), 3);
  world.Pod("coordinator-1").deletion = world.now + seconds(30);
  world.Turn();
  world.TurnIn(seconds(1));
  EXPECT_TRUE(world.Has("coordinator-2"));
  EXPECT_EQ(world.Status().coordinator.restarts, 1);
  EXPECT_EQ(world.Status().coordinator.fruitless, 0);
}

TEST(OperatorPlanNames, ADeletedServiceIsMadeAgainSoonWhileNodesCannotReachTheCoordinator) {
  PlanWorld world;
  world.RunJob();
  world.Say(Registered({0, 1}));
  Plan plan = world.TurnIn(seconds(1));
  ASSERT_NE(NeedOf(plan, FactKind::kService), nullptr);
  EXPECT_EQ(NeedOf(plan, FactKind::kService)->max_age, seconds(600)) << "nothing is in doubt";
  world.there.erase({FactKind::kService, std::string(kBase) + "-coordinator"});
  world.TurnIn(seconds(31));
  EXPECT_EQ(world.Did(Action::Kind::kCreate, "services"), 1);
  world.Say(Registered({0}));
  plan = world.TurnIn(seconds(1));
  EXPECT_EQ(world.Did(Action::Kind::kCreate, "services"), 2);
  ASSERT_TRUE(plan.wake);
  EXPECT_LE(*plan.wake, world.now + seconds(30));
}

TEST(OperatorPlanNames, ADeletedServiceIsMadeAgainBeforeASuccessorStarts) {
  PlanWorld world;
  world.RunJob();
  world.Say(Registered({0, 1}));
  world.TurnIn(seconds(31));
  world.there.erase({FactKind::kService, std::string(kBase) + "-coordinator"});
  world.Pod("node-0-1").deletion = world.now + seconds(60);
  world.Turn();
  EXPECT_TRUE(world.Has("node-0-2"));
  EXPECT_EQ(world.Did(Action::Kind::kCreate, "services"), 2);
}

TEST(OperatorPlanNames, NodesThatLeftAreNotKeptAboveTheNodeCount) {
  PlanWorld world;
  world.RunJob();
  world.Edit("nodeCount", 1);
  world.Turn();
  world.End(world.Pod("node-1-1"), 3);
  world.Turn();
  world.TurnIn(seconds(1));
  EXPECT_FALSE(world.Has("node-1-1"));
  EXPECT_TRUE(world.Pod("node-0-1").Live());
  EXPECT_EQ(world.Status().nodes.restarts + world.Status().nodes.disruptions, 0);
  world.Edit("nodeCount", 2);
  world.Turn();
  EXPECT_TRUE(world.Has("node-1-2")) << "a name is never used again";
}

TEST(OperatorPlanNames, ARunningJobIsNotPlannedEverySecond) {
  PlanWorld world;
  world.RunJob();
  world.Say(Registered({0, 1}));
  const Plan plan = world.TurnIn(seconds(20));
  const Plan next = world.Turn();
  ASSERT_TRUE(plan.pull);
  EXPECT_LE(plan.pull->max_age, seconds(5));
  ASSERT_TRUE(next.wake);
  EXPECT_GE(*next.wake, world.now + seconds(5));
}

}  // namespace
}  // namespace parallelrun::operators
