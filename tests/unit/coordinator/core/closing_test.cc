#include "coordinator/core/closing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/coordinator/core_harness.h"

namespace parallelrun::coordinator {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Kind = job::ProcessEvent::Kind;

constexpr WorkInstant kBegan{seconds(1000)};

TEST(CoordinatorClosing, NobodyIsToldBeforeTheResultsAreDurable) {
  Closing closing(seconds(300));
  EXPECT_FALSE(closing.Durable(99));
  closing.Begin(kBegan, 50);
  EXPECT_FALSE(closing.Durable(49));
  EXPECT_FALSE(closing.tells());
  EXPECT_TRUE(closing.Durable(50));
  EXPECT_TRUE(closing.tells());
  EXPECT_FALSE(closing.Durable(60)) << "once";
}

TEST(CoordinatorClosing, EndsWhoeverIsHeardOf) {
  Closing closing(seconds(300));
  EXPECT_FALSE(closing.Overdue(kBegan + seconds(9999)));
  closing.Begin(kBegan, 0);
  EXPECT_FALSE(closing.Overdue(kBegan + seconds(330)));
  EXPECT_TRUE(closing.Overdue(kBegan + seconds(331)));
}

TEST(CoordinatorClosing, ANodeIsToldOnceInEachIncarnation) {
  Closing closing(seconds(300));
  closing.Told(3, {1, 1});
  EXPECT_TRUE(closing.WasTold(3, {1, 1}));
  EXPECT_FALSE(closing.WasTold(3, {1, 2}));
  EXPECT_FALSE(closing.WasTold(4, {1, 1}));
  closing.Told(3, {1, 2});
  closing.Told(3, {1, 1});  // whose answer had waited for the disk
  EXPECT_TRUE(closing.WasTold(3, {1, 2}));
}

TEST(CoordinatorClosing, WhoIsNotNamedIsGone) {
  const std::vector<job::ProcessId> all = {{0, 1}, {0, 12}, {0, 120}};
  EXPECT_THAT(NotNamed(all, "12 120"), ElementsAre(job::ProcessId{0, 1}));
  EXPECT_THAT(NotNamed(all, "1 12 120"), IsEmpty());
  EXPECT_THAT(NotNamed(all, ""), ElementsAre(all[0], all[1], all[2]));
  EXPECT_THAT(NotNamed(all, "x 1,99999999999999999999"), ElementsAre(all[1], all[2]));
}

// One node with one process that has a shutdown(), and whose result is durable.
class ClosingJob : public CoordinatorHarness, public ::testing::Test {
 protected:
  void SetUp() override {
    limits.rules.append_row = false;
    Start();
    Plan(1);
    node = Join(0);
    Tell(Kind::kOwes);
    Sync();
    Report(0, node, Lease(0, node));
    Sync();
  }
  std::shared_ptr<Said> Tell(Kind kind, std::string_view message = "") {
    job::ExchangeRequest request = Request(node);
    request.events.push_back({0, kind, message, ""});
    return Send(0, request);
  }
  job::Incarnation node;
};

TEST_F(ClosingJob, AParkedNodeIsToldOnceAndThenLeftInPeace) {
  EXPECT_EQ(core->phase(), Coordinator::Phase::kClosing);
  const auto first = Send(0, Request(node, 0, 20'000));
  const auto second = Send(0, Request(node, 0, 20'000));
  EXPECT_EQ(second->answers, 0) << "it would ask again and again";
  EXPECT_EQ(first->directive, job::Directive::kClose);
  job::ExchangeRequest unheard = Request(node, 0, 20'000);
  unheard.unheard = true;
  EXPECT_EQ(Send(0, unheard)->directive, job::Directive::kClose) << "the answer may have been that";
}

TEST_F(ClosingJob, ALostProcessIsDurableBeforeItsNodeForgetsIt) {
  const auto told = Tell(Kind::kCutOff, "too slow");
  EXPECT_EQ(told->answers, 0);
  Sync();
  EXPECT_EQ(told->answers, 1);
  EXPECT_EQ(state.verdict()->reason, "ShutdownFailed");
}

TEST_F(ClosingJob, ANodeThatLeavesOrIsNotExpectedIsNotWaitedFor) {
  core->Leave(0, node, now());
  ASSERT_TRUE(state.verdict());
  EXPECT_EQ(state.verdict()->outcome, job::Outcome::kFailed);
}

TEST_F(ClosingJob, APodThatEndedIsNotWaitedFor) {
  core->OnPodEnd({0, 1, "Completed", 0}, now());
  ASSERT_TRUE(state.verdict());
  EXPECT_EQ(state.verdict()->reason, "ShutdownFailed");
}

TEST_F(ClosingJob, ADrainHurriesItsNodes) {
  core->Drain(now());
  EXPECT_EQ(core->phase(), Coordinator::Phase::kClosing);
  EXPECT_EQ(Send(0, Request(node, 0, 20'000))->directive, job::Directive::kDrain);
}

TEST_F(ClosingJob, ACancelEndsItAtOnce) {
  core->Cancel(now());
  EXPECT_EQ(state.verdict()->reason, "Canceled");
}

TEST_F(ClosingJob, TheNextEpochWaitsForTheSameProcesses) {
  Start();
  EXPECT_EQ(core->phase(), Coordinator::Phase::kClosing);
  node = Join(0);
  Tell(Kind::kOwes);
  Tell(Kind::kOwing, "0");
  EXPECT_FALSE(state.verdict());
  Tell(Kind::kClosed);
  Sync();
  EXPECT_EQ(state.verdict()->outcome, job::Outcome::kSucceeded);
}

TEST_F(ClosingJob, OfANodeThatNeverComesTheJobEndsAllTheSame) {
  Start();
  for (int i = 0; i < 331; ++i) Advance(seconds(1));
  ASSERT_TRUE(state.verdict());
  EXPECT_EQ(state.verdict()->reason, "ShutdownFailed");
}

TEST(CoordinatorWithoutShutdown, DoesNotClose) {
  CoordinatorHarness h;
  h.Plan(1);
  const job::Incarnation node = h.Join(0);
  h.Report(0, node, h.Lease(0, node));
  EXPECT_EQ(h.core->phase(), Coordinator::Phase::kDeciding);
}

}  // namespace
}  // namespace parallelrun::coordinator
