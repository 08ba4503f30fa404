// PUT /v1/control: what its body may be, and what the coordinator makes of it.
#include "coordinator/control.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "api/fields/told.h"
#include "tests/unit/coordinator/core_harness.h"

namespace parallelrun::coordinator {
namespace {

TEST(Control, EveryKeyIsOptionalAndTyped) {
  const Result<ControlRequest> all = ParseControl(
      R"({"generation": 7, "nodeCount": 3, "errorThreshold": 5, "allowedFailedCount": -1,
          "allowedFailedPercent": 12.5, "drain": true, "cancel": false,
          "podEnds": [{"node": 2, "incarnation": 5, "reason": "OOMKilled", "exitCode": 137}]})");
  ASSERT_TRUE(all.ok()) << all.error().message;
  EXPECT_EQ(all->generation, 7U);
  EXPECT_EQ(all->spec["nodeCount"], 3);
  EXPECT_EQ(all->ChangedFrom({}), (job::Thresholds{5, std::nullopt, 12.5}));
  EXPECT_EQ(all->ChangedFrom({5, 3, 12.5}), (job::Thresholds{5, -1, 12.5}));
  EXPECT_TRUE(all->drain);
  EXPECT_FALSE(all->cancel);
  ASSERT_EQ(all->pod_ends.size(), 1U);
  EXPECT_EQ(all->pod_ends[0].reason, "OOMKilled");
  EXPECT_EQ(all->pod_ends[0].exit_code, 137);

  const Result<ControlRequest> none = ParseControl("{}");
  ASSERT_TRUE(none.ok());
  EXPECT_FALSE(none->generation);
  EXPECT_TRUE(none->spec.empty());
  EXPECT_EQ(none->ChangedFrom({1, 2, 3}), (job::Thresholds{1, 2, 3}));
}

// What the operator says of a job is what the coordinator takes, whatever fields there come to be.
TEST(Control, AllThatMayBeSaidAnewIsTaken) {
  api::JobSpec spec;
  spec.node_count = 4;
  spec.allowed_failed_percent = 12.5;
  const nlohmann::json said = api::fields::FieldsForRunningJob(spec);
  const Result<ControlRequest> control = ParseControl(said.dump());
  ASSERT_TRUE(control.ok()) << control.error().message;
  EXPECT_EQ(control->spec, said);
  EXPECT_EQ(control->spec["nodeCount"], 4);
  EXPECT_EQ(control->ChangedFrom({7, 7, 7}), (job::Thresholds{-1, -1, 12.5}));
  EXPECT_EQ(control->ChangedFrom({}), (job::Thresholds{std::nullopt, std::nullopt, 12.5}));
}

// A field that only came to be told would change nothing.
TEST(Control, AllThatMayBeSaidAnewActs) {
  const nlohmann::json said = api::fields::FieldsForRunningJob(api::JobSpec());
  for (const auto& [name, value] : said.items()) {
    if (name == "nodeCount") continue;  // Coordinator::SetNodes, below
    const Result<ControlRequest> control = ParseControl(nlohmann::json{{name, 1}}.dump());
    ASSERT_TRUE(control.ok()) << control.error().message;
    EXPECT_NE(control->ChangedFrom({}), job::Thresholds()) << name;
  }
}

TEST(Control, WhatIsWrongIsNamed) {
  for (const char* body :
       {"", "[]", "7", R"({"nodes": 3})", R"({"nodeCount": -1})", R"({"nodeCount": "3"})",
        R"({"nodeCount": 2.5})", R"({"nodeCount": 1000001})", R"({"errorThreshold": -2})",
        R"({"errorThreshold": 3000000000})", R"({"allowedFailedPercent": 101})",
        R"({"allowedFailedPercent": null})", R"({"drain": 1})", R"({"generation": -1})",
        R"({"generation": 18446744073709551615})", R"({"podEnds": {}})", R"({"podEnds": [1]})",
        R"({"podEnds": [{"node": 1, "reason": "Error"}]})",
        R"({"podEnds": [{"node": 1, "incarnation": 0, "reason": "Error"}]})"}) {
    const Result<ControlRequest> parsed = ParseControl(body);
    EXPECT_FALSE(parsed.ok()) << body;
    if (parsed.ok()) continue;
    EXPECT_EQ(parsed.error().code, Code::kInvalid) << body;
    EXPECT_NE(parsed.error().message.find("control"), std::string::npos) << parsed.error().message;
  }
}

TEST(CoordinatorControl, NodesAboveTheCountAreDrainedAndMayComeBack) {
  CoordinatorHarness h;
  h.Plan(4);
  const job::Incarnation first = h.Join(0, "a");
  const job::Incarnation second = h.Join(1, "b");
  const auto parked = h.Send(1, h.Request(second, 0, 20'000));
  EXPECT_EQ(parked->answers, 0);
  h.core->SetNodes(1, h.now());
  EXPECT_EQ(parked->directive, job::Directive::kDrain);  // at once, not when its park is over
  EXPECT_EQ(parked->answers, 1);
  EXPECT_TRUE(h.Send(1, h.Request(second, 1))->leased.empty());
  EXPECT_EQ(h.Send(0, h.Request(first, 1))->leased.size(), 1U);
  h.core->Leave(1, second, h.now());

  h.core->SetNodes(2, h.now());
  const job::Incarnation third = h.Join(1, "c");
  const auto said = h.Send(1, h.Request(third, 1));
  EXPECT_EQ(said->directive, job::Directive::kGoOn);
  EXPECT_EQ(said->leased.size(), 1U);
}

TEST(CoordinatorControl, NoNodesPauseTheJobAndDoNotEndIt) {
  CoordinatorHarness h;
  h.Plan(2);
  const job::Incarnation node = h.Join(0);
  job::ExchangeRequest gave_up = h.Request(node);
  gave_up.events.push_back({0, job::ProcessEvent::Kind::kInitFailed, "no", ""});
  h.Send(0, gave_up);
  h.core->SetNodes(0, h.now());
  EXPECT_EQ(h.Send(0, h.Request(node, 1))->directive, job::Directive::kDrain);
  h.core->Leave(0, node, h.now());
  h.Advance(std::chrono::hours(48));
  EXPECT_EQ(h.core->phase(), Coordinator::Phase::kRunning);
  h.core->SetNodes(1, h.now());
  EXPECT_EQ(h.Send(0, h.Request(h.Join(0), 1))->leased.size(), 1U);
}

TEST(CoordinatorControl, AChangedThresholdDecidesAndOutlivesTheEpoch) {
  CoordinatorLimits limits;
  limits.spec.run_max_try = 1;
  limits.rules.thresholds.error_threshold = 5;
  CoordinatorHarness h(limits);
  h.Plan(4);
  const job::Incarnation node = h.Join(0);
  h.Report(0, node, h.Lease(0, node), job::Finished::Kind::kFailed);
  h.Sync();
  const uint64_t before = h.ledger->appended();
  h.core->SetThresholds({5, {}, {}}, h.now());
  EXPECT_EQ(h.ledger->appended(), before);  // in force already
  h.core->SetThresholds({3, {}, {}}, h.now());
  EXPECT_GT(h.ledger->appended(), before);
  EXPECT_EQ(h.core->phase(), Coordinator::Phase::kRunning);
  h.Sync();

  h.Start();  // the next epoch
  EXPECT_EQ(h.state.settings()->generation, 1U);
  EXPECT_EQ(h.state.counts().failed, 1U);  // a settings record of one generation forgets nothing
  EXPECT_EQ(job::RulesOf(h.state.settings()->job).thresholds, (job::Thresholds{3, {}, {}}));
  h.core->SetThresholds({0, {}, {}}, h.now());
  EXPECT_EQ(h.core->phase(), Coordinator::Phase::kDeciding);
  EXPECT_EQ(h.state.verdict()->reason, "ErrorThresholdExceeded");
}

struct PodEnds : CoordinatorHarness {
  explicit PodEnds(CoordinatorLimits given = {}) : CoordinatorHarness(std::move(given)) {}
  job::Incarnation JoinPod(uint32_t node, uint64_t pod) {
    return core->Register(node, "pod" + std::to_string(pod), 2, now(), pod).incarnation;
  }
  void End(uint32_t node, uint64_t pod, const std::string& reason) {
    core->OnPodEnd({node, pod, reason, 137}, now());
  }
};

TEST(CoordinatorControl, TheOnlyMiniBatchOfAnOomKilledPodFails) {
  CoordinatorLimits limits;
  limits.spec.run_max_try = 2;
  PodEnds h(limits);
  h.Plan(1);
  for (uint64_t pod = 5; pod < 7; ++pod) {
    const job::Incarnation node = h.JoinPod(0, pod);
    const job::LeaseName name = h.Lease(0, node);
    h.Hold(0, node, name);
    h.End(0, pod, "OOMKilled");
    h.End(0, pod, "OOMKilled");  // told again: nothing more
    h.Sync();
    EXPECT_EQ(h.core->running(), 0U);
    EXPECT_EQ(h.state.batches()[0].failed_attempts, pod - 4);
    EXPECT_EQ(h.state.batches()[0].losses, 0U);
  }
  EXPECT_EQ(h.state.verdict()->reason, "NothingSucceeded");
  const std::vector<job::DistinctError> errors = h.state.errors().Top(1);
  EXPECT_EQ(errors[0].kind, "OOMKilled");
  EXPECT_NE(errors[0].message.find("spec.resources.limits.memory"), std::string::npos);
}

TEST(CoordinatorControl, OfSeveralNoneIsBlamedForTheEndOfItsPod) {
  PodEnds h;
  h.Plan(3);
  const job::Incarnation node = h.JoinPod(0, 5);
  const job::LeaseName a = h.Lease(0, node);
  const job::LeaseName b = h.Lease(0, node);
  h.Lease(0, node);  // waits
  h.Hold(0, node, a);
  h.Hold(0, node, b);
  h.End(0, 5, "OOMKilled");
  EXPECT_EQ(h.core->running(), 0U);
  EXPECT_EQ(h.core->pending(), 3U);
  EXPECT_EQ(h.state.batches()[0].losses, 1U);
  EXPECT_EQ(h.state.batches()[1].losses, 1U);
  EXPECT_EQ(h.state.batches()[2].losses, 0U);
  EXPECT_EQ(h.state.errors().total(), 0U);
}

TEST(CoordinatorControl, APodThatEndsBeforeItCouldTellWhatItBegan) {
  PodEnds h;
  h.Plan(2);
  job::Incarnation node;
  for (const uint64_t pod : {4U, 5U}) {  // the first time it may have been anything
    node = h.JoinPod(0, pod);
    h.Lease(0, node);
    h.Lease(0, node);
    h.End(0, pod, "OOMKilled");
  }
  for (const job::BatchId id : {0U, 1U}) {
    EXPECT_EQ(h.state.batches()[id].losses, 0U);
    EXPECT_EQ(h.state.batches()[id].failed_attempts, 0U);
    EXPECT_EQ(h.state.companies().Of(id), 1U);
  }
  node = h.JoinPod(0, 6);
  ASSERT_EQ(h.Lease(0, node).id, 0U);
  h.End(0, 6, "OOMKilled");
  EXPECT_EQ(h.state.batches()[0].failed_attempts, 1U) << "nothing else was there";
}

TEST(CoordinatorControl, AnEvictedPodLosesNothing) {
  PodEnds h;
  h.Plan(1);
  const job::Incarnation node = h.JoinPod(0, 5);
  h.Hold(0, node, h.Lease(0, node));
  h.End(0, 5, "TerminationByKubelet");
  EXPECT_EQ(h.core->pending(), 1U);
  EXPECT_EQ(h.state.batches()[0].losses, 0U);
  EXPECT_EQ(h.core->nodes().registered(), 0U);
}

// What it ran may have filled the disk: it is not run for ever.
TEST(CoordinatorControl, APodThatFilledItsOwnDiskCountsForWhatItRan) {
  PodEnds h;
  h.Plan(1);
  const job::Incarnation node = h.JoinPod(0, 5);
  h.Hold(0, node, h.Lease(0, node));
  h.End(0, 5, "Evicted");
  EXPECT_EQ(h.state.batches()[0].losses, 1U);
}

TEST(CoordinatorControl, ADiskThatDoesNotSufficeForInitEndsTheJob) {
  PodEnds h;
  h.Plan(1);
  for (uint64_t pod = 1; pod <= 2; ++pod) {
    h.JoinPod(0, pod);
    for (int i = 0; i < 61; ++i) h.Advance(seconds(1));
    h.End(0, pod, "Evicted");
  }
  ASSERT_TRUE(h.state.verdict());
  EXPECT_EQ(h.state.verdict()->reason, "InitFailed");
  EXPECT_THAT(h.state.verdict()->message, testing::HasSubstr("more disk than its limits allow"));
}

// None of them ever came so far as to register: the job would have waited for ever.
TEST(CoordinatorControl, PodsThatEndAgainAndAgainAreNoProgress) {
  for (const uint64_t ends : {5U, 6U}) {
    PodEnds h;
    h.Plan(1);
    for (uint64_t pod = 1; pod <= ends; ++pod) h.End(0, pod, "OutOfcpu");
    for (int i = 0; i < 301 && !h.state.verdict(); ++i) h.Advance(seconds(1));
    ASSERT_EQ(h.state.verdict().has_value(), ends == 6);
    if (ends == 5) continue;
    EXPECT_EQ(h.state.verdict()->reason, "NoProgress");
    EXPECT_THAT(h.state.verdict()->message,
                testing::HasSubstr("the pod of node 0 ended 6 times in a row, the last time with "
                                   "OutOfcpu"));
  }
}

TEST(CoordinatorControl, TheEndOfAnotherPodIsNotThisOnes) {
  PodEnds h;
  h.Plan(1);
  const job::Incarnation node = h.JoinPod(0, 6);
  h.Hold(0, node, h.Lease(0, node));
  h.End(0, 5, "OOMKilled");  // the one before, told late
  h.End(3, 5, "OOMKilled");  // of a node that nobody knows
  EXPECT_EQ(h.core->running(), 1U);
  EXPECT_EQ(h.core->nodes().registered(), 1U);
  h.End(0, 6, "Error");
  EXPECT_EQ(h.state.batches()[0].losses, 1U);
}

// A pod that is on its way out may be in run() until it hears that it was replaced.
TEST(CoordinatorControl, WhatAReplacedPodHoldsWaitsUntilItsEndIsToldOrItsLeaseIsOver) {
  PodEnds h;
  h.Plan(1);
  const job::Incarnation old = h.JoinPod(0, 5);
  h.Hold(0, old, h.Lease(0, old));
  h.Advance(seconds(1));
  const job::Incarnation next = h.JoinPod(0, 6);
  EXPECT_EQ(h.state.batches()[0].losses, 0U) << "nobody knows why it went";
  for (auto second = seconds(1); second < h.limits.lease; second += seconds(1)) {
    EXPECT_TRUE(h.Send(0, h.Request(next, 1))->leased.empty());
    h.Advance(seconds(1));
  }
  EXPECT_EQ(h.Send(0, h.Request(next, 1))->leased.size(), 1U);
  EXPECT_EQ(h.state.batches()[0].losses, 0U);
}

TEST(CoordinatorControl, AReplacedPodWhoseEndWasToldHoldsUpNobody) {
  PodEnds h;
  h.Plan(1);
  const job::Incarnation old = h.JoinPod(0, 5);
  h.Hold(0, old, h.Lease(0, old));
  h.End(0, 5, "Killed");
  EXPECT_EQ(h.state.batches()[0].losses, 1U);
  const job::Incarnation next = h.JoinPod(0, 6);
  EXPECT_EQ(h.Send(0, h.Request(next, 1))->leased.size(), 1U);
}

// The work of a pod's grace is not thrown away for that its successor comes up faster.
TEST(CoordinatorControl, TheNextPodWaitsForTheLastWorkOfTheOneBefore) {
  PodEnds h;
  h.Plan(1);
  const job::Incarnation old = h.JoinPod(0, 5);
  EXPECT_FALSE(h.core->HasToWait(0, "pod6", 6, h.now())) << "nothing is held";
  const job::LeaseName lease = h.Lease(0, old);
  h.Hold(0, old, lease);
  EXPECT_TRUE(h.core->HasToWait(0, "pod6", 6, h.now()));
  EXPECT_FALSE(h.core->HasToWait(1, "pod6", 6, h.now())) << "another node";
  EXPECT_FALSE(h.core->HasToWait(0, "elsewhere", 0, h.now())) << "its pod's number is unknown";
  h.core->Leave(0, old, h.now());
  EXPECT_FALSE(h.core->HasToWait(0, "pod6", 6, h.now())) << "it has left";
  EXPECT_EQ(h.core->running(), 0U);
}

TEST(CoordinatorControl, TheNextPodWaitsForNoneThatIsSilent) {
  PodEnds h;
  h.Plan(1);
  const job::Incarnation old = h.JoinPod(0, 5);
  h.Hold(0, old, h.Lease(0, old));
  EXPECT_TRUE(h.core->HasToWait(0, "pod6", 6, h.now()));
  for (int i = 0; i < 11; ++i) h.Advance(seconds(1));
  EXPECT_FALSE(h.core->HasToWait(0, "pod6", 6, h.now())) << "its lease is over";
}

TEST(CoordinatorControl, TheNextPodWaitsForAMinuteAtMost) {
  PodEnds h;
  h.Plan(1);
  const job::Incarnation old = h.JoinPod(0, 5);
  const job::LeaseName lease = h.Lease(0, old);
  for (int i = 0; i < 60; ++i) {
    h.Hold(0, old, lease);
    ASSERT_TRUE(h.core->HasToWait(0, "pod6", 6, h.now())) << i;
    h.Advance(seconds(1));
  }
  h.Hold(0, old, lease);
  EXPECT_FALSE(h.core->HasToWait(0, "pod6", 6, h.now()));
  EXPECT_TRUE(h.core->HasToWait(0, "pod7", 7, h.now())) << "a later one has its own";
}

TEST(CoordinatorControl, TheNextPodWaitsForNoneWhoseEndWasTold) {
  PodEnds h;
  h.Plan(1);
  const job::Incarnation old = h.JoinPod(0, 5);
  h.Hold(0, old, h.Lease(0, old));
  h.End(0, 5, "Deleted");
  EXPECT_FALSE(h.core->HasToWait(0, "pod6", 6, h.now()));
}

// Outside of pods with a number, only what is on the line tells the dead agent from its successor.
TEST(CoordinatorControl, AConnectionThatBrokeIsNobodysWhenThePodsNumberIsUnknown) {
  PodEnds h;
  h.Plan(1);
  const job::Incarnation node = h.Join(0);
  h.Hold(0, node, h.Lease(0, node));
  const auto parked = h.Send(0, h.Request(node, 0, 1000));
  EXPECT_EQ(parked->answers, 0);
  h.End(0, 4, "Error");
  EXPECT_EQ(h.core->running(), 1U) << "an agent with an open call is not the one that died";
  h.core->ConnectionGone(parked->exchange, h.now());
  h.End(0, 5, "Killed");
  EXPECT_EQ(h.core->running(), 0U);
  EXPECT_EQ(h.state.batches()[0].losses, 1U);
  EXPECT_EQ(parked->answers, 0) << "nobody would hear it";
}

TEST(CoordinatorControl, MemoryThatDoesNotSufficeForInitEndsTheJob) {
  PodEnds h;
  h.Plan(1);
  for (uint64_t pod = 1; pod <= 2; ++pod) {
    h.JoinPod(0, pod);
    for (int i = 0; i < 61; ++i) h.Advance(seconds(1));
    h.End(0, pod, "OOMKilled");
  }
  ASSERT_TRUE(h.state.verdict());
  EXPECT_EQ(h.state.verdict()->reason, "InitFailed");
  EXPECT_NE(h.state.verdict()->message.find("OOMKilled"), std::string::npos);
}

TEST(CoordinatorControl, OneOfTwoAgentsOfANodeIsSuperseded) {
  CoordinatorHarness h;
  h.core->Register(0, "old", 1, h.now());
  EXPECT_FALSE(h.core->nodes().Superseded(0, "old", 0));
  EXPECT_FALSE(h.core->nodes().Superseded(0, "new", 0));
  h.core->Register(0, "new", 1, h.now());
  EXPECT_TRUE(h.core->nodes().Superseded(0, "old", 0));
  EXPECT_FALSE(h.core->nodes().Superseded(0, "new", 0));
  // Pods have numbers: after a restart of the coordinator the older one may come first or last.
  h.core->Register(1, "pod9", 1, h.now(), 9);
  EXPECT_TRUE(h.core->nodes().Superseded(1, "pod5", 5));
  EXPECT_FALSE(h.core->nodes().Superseded(1, "pod11", 11));
}

}  // namespace
}  // namespace parallelrun::coordinator
