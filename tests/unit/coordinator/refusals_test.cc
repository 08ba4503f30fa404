// What nodes report and is not taken is counted and told; nothing else comes of it.
#include "coordinator/refusals.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "coordinator/progress.h"
#include "tests/unit/coordinator/core_harness.h"

namespace parallelrun::coordinator {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Kind = job::Finished::Kind;

uint64_t All(const CoordinatorHarness& h) {
  uint64_t all = 0;
  for (size_t i = 0; i < kRefusals; ++i)
    all += h.core->told().refusals().count(static_cast<RefusalReason>(i));
  return all;
}

uint64_t Count(const CoordinatorHarness& h, RefusalReason why) {
  return h.core->told().refusals().count(why);
}

// One node's line.
Refusals::Line TakeOne(CoordinatorHarness& h) {
  const std::vector<Refusals::Line> lines = h.core->told().TakeRefusals();
  EXPECT_THAT(lines, SizeIs(1));
  return lines.empty() ? Refusals::Line{} : lines[0];
}

// A node that was stopped for longer than its lease, while another one did its work.
TEST(CoordinatorRefusals, TheLateResultOfAFrozenNodeIsCountedAndTold) {
  CoordinatorHarness h;
  h.Plan(2);
  const job::Incarnation frozen = h.core->Register(0, "a", 1, h.now(), 5).incarnation;
  const auto leased = h.Send(0, h.Request(frozen, 1));
  const job::LeaseName lease = leased->leased.at(0);
  for (int i = 0; i < 11; ++i) h.Advance(seconds(1));
  const job::Incarnation other = h.Join(1, "b");
  h.Report(1, other, h.Lease(1, other));
  h.Sync();
  ASSERT_EQ(h.state.counts().succeeded, 1U);

  EXPECT_EQ(h.Report(0, frozen, lease)->error->code, Code::kStale);
  EXPECT_EQ(Count(h, RefusalReason::kStale), 1U);
  Refusals::Line line = TakeOne(h);
  EXPECT_FALSE(line.warns) << "it will be told again";
  EXPECT_EQ(line.text,
            "refused of node 0, as this incarnation is not in force: a result of mini-batch 0 "
            "(fence 1.1, incarnation 1.1)");

  const job::Incarnation again = h.core->Register(0, "a", 1, h.now(), 5).incarnation;
  job::ExchangeRequest offer = h.Request(again);
  offer.offered.push_back({lease.id, lease.fence, leased->digests.at(0)});
  EXPECT_THAT(h.Send(0, offer)->refused, ElementsAre(lease));
  EXPECT_EQ(Count(h, RefusalReason::kSettled), 1U);
  EXPECT_EQ(All(h), 2U);
  line = TakeOne(h);
  EXPECT_TRUE(line.warns);
  EXPECT_EQ(line.text,
            "refused of node 0 (pod 5), as another attempt has settled it: the offer of mini-batch "
            "0 (fence 1.1, incarnation 1.3)");
  EXPECT_THAT(h.core->told().TakeRefusals(), IsEmpty());
}

TEST(CoordinatorRefusals, WhatIsNotTheReportersChangesNothing) {
  CoordinatorHarness h;
  h.Plan(3);
  const job::Incarnation a = h.Join(0, "a");
  const job::Incarnation b = h.Join(1, "b");
  const job::LeaseName of_b = h.Lease(1, b);
  const job::LeaseName old = h.Lease(0, a);
  ASSERT_THAT(h.Report(0, a, old, Kind::kReturned)->settled, ElementsAre(old));
  ASSERT_EQ(h.Lease(0, a).id, old.id);
  const uint64_t bytes = h.ledger->appended();
  for (const Kind kind : {Kind::kSucceeded, Kind::kFailed}) {
    for (const job::LeaseName& name : {of_b, old, job::LeaseName{99, {1, 99}}}) {
      EXPECT_THAT(h.Report(0, a, name, kind)->refused, ElementsAre(name));
    }
  }
  EXPECT_EQ(Count(h, RefusalReason::kLeased), 4U);
  EXPECT_EQ(Count(h, RefusalReason::kUnknown), 2U);
  EXPECT_EQ(All(h), 6U);
  EXPECT_EQ(h.ledger->appended(), bytes);
  EXPECT_EQ(h.core->running(), 2U);
  const std::vector<Refusals::Line> lines = h.core->told().TakeRefusals();
  ASSERT_THAT(lines, SizeIs(2));
  EXPECT_TRUE(lines[0].warns && lines[1].warns);
  EXPECT_THAT(lines[0].text,
              HasSubstr("it is under another lease: a result of mini-batch 0 (fence "
                        "1.1, incarnation 1.1), a result of mini-batch 1 (fence 1.2"));
  EXPECT_THAT(lines[0].text, EndsWith(", and 1 more"));
  EXPECT_THAT(lines[1].text, EndsWith("a failed attempt of mini-batch 99 (fence 1.99, incarnation "
                                      "1.1)"));
}

TEST(CoordinatorRefusals, WhatIsToldAgainIsNoRefusal) {
  CoordinatorHarness h;
  h.Plan(3);
  const job::Incarnation in = h.Join(0);
  const job::LeaseName done = h.Lease(0, in);
  const job::LeaseName failed = h.Lease(0, in);
  const job::LeaseName back = h.Lease(0, in);
  for (int times = 0; times < 2; ++times) {
    h.Report(0, in, done);
    h.Report(0, in, failed, Kind::kFailed);
    h.Report(0, in, back, Kind::kReturned);
    h.Sync();
  }
  EXPECT_EQ(All(h), 0U);
  EXPECT_THAT(h.core->told().TakeRefusals(), IsEmpty());
}

TEST(CoordinatorRefusals, AFailedAttemptOfALeaseThatIsOverIsNotATry) {
  CoordinatorHarness h;
  h.Plan(1);
  const job::LeaseName lease = h.Lease(0, h.Join(0));
  for (int i = 0; i < 11; ++i) h.Advance(seconds(1));
  EXPECT_THAT(h.Report(0, h.Join(0), lease, Kind::kFailed)->refused, ElementsAre(lease));
  EXPECT_EQ(Count(h, RefusalReason::kExpired), 1U);
  EXPECT_EQ(h.state.batches()[0].failed_attempts, 0U);
}

TEST(CoordinatorRefusals, OffersOfOtherContentAndResultsWithAHole) {
  CoordinatorHarness h;
  h.Plan(2);
  job::Incarnation in = h.Join(0);
  const auto leased = h.Send(0, h.Request(in, 1));
  job::ExchangeRequest hole = h.Request(in);
  hole.finished.push_back(h.Done(leased->leased.at(0)));
  hole.finished[0].rows_offset = 4;
  h.Send(0, hole);
  EXPECT_EQ(Count(h, RefusalReason::kIncomplete), 1U);
  h.Start();
  in = h.Join(0);
  job::ExchangeRequest offer = h.Request(in);
  offer.offered.push_back({0, leased->leased[0].fence, leased->digests.at(0) + 1});
  offer.offered.push_back({99, leased->leased[0].fence, 0});
  h.Send(0, offer);
  EXPECT_EQ(Count(h, RefusalReason::kContent), 1U);
  EXPECT_EQ(Count(h, RefusalReason::kUnknown), 1U);
}

TEST(CoordinatorRefusals, WhatIsHeldAndFinishedCountsOnceAsWhatCameOfIt) {
  CoordinatorHarness h;
  h.Plan(1);
  const job::LeaseName lease = h.Lease(0, h.Join(0));
  for (int i = 0; i < 11; ++i) h.Advance(seconds(1));
  h.Lease(1, h.Join(1));
  job::ExchangeRequest request = h.Request(h.Join(0));
  request.held.push_back({lease.id, lease.fence, true});
  request.finished.push_back(h.Done(lease));
  h.Send(0, request);
  EXPECT_EQ(All(h), 1U);
  EXPECT_THAT(TakeOne(h).text, HasSubstr(": a result of mini-batch 0"));
}

TEST(CoordinatorRefusals, AfterTheVerdictItIsInTheOrderOfThings) {
  CoordinatorLimits limits;
  limits.rules.thresholds.allowed_failed_count = 0;
  limits.spec.run_max_try = 1;
  CoordinatorHarness h(limits);
  h.Plan(2);
  const job::Incarnation in = h.Join(0);
  const job::LeaseName bad = h.Lease(0, in);
  const job::LeaseName late = h.Lease(0, in);
  h.Report(0, in, bad, Kind::kFailed);
  ASSERT_TRUE(h.state.verdict());
  h.Report(0, in, late);
  EXPECT_EQ(Count(h, RefusalReason::kJobOver), 1U);
  EXPECT_FALSE(TakeOne(h).warns);
}

// As a broken agent may send them, in one exchange and in many.
TEST(CoordinatorRefusals, AFloodIsALineForEachReason) {
  CoordinatorHarness h;
  h.Plan(1);
  const job::Incarnation in = h.Join(0);
  for (int round = 0; round < 10; ++round) {
    job::ExchangeRequest flood = h.Request(in);
    for (job::BatchId id = 1; id <= 1000; ++id) flood.finished.push_back(h.Done({id, {1, id}}));
    h.Send(0, flood);
    flood.incarnation.number = 77;
    h.Send(0, flood);
  }
  EXPECT_EQ(Count(h, RefusalReason::kUnknown), 10'000U);
  EXPECT_EQ(Count(h, RefusalReason::kStale), 10'000U);
  const std::vector<Refusals::Line> lines = h.core->told().TakeRefusals();
  ASSERT_THAT(lines, SizeIs(2));
  for (const Refusals::Line& line : lines) {
    EXPECT_LT(line.text.size(), 500U);
    EXPECT_THAT(line.text, EndsWith(", and 9997 more"));
  }
}

TEST(CoordinatorRefusals, TheMetricHasEachReason) {
  CoordinatorHarness h;
  h.Plan(1);
  h.Report(0, h.Join(0), {99, {1, 1}});
  const std::string text = Metrics(*h.core, 1);
  EXPECT_THAT(text, HasSubstr("# TYPE parallelrun_refused_reports_total counter"));
  EXPECT_THAT(text, HasSubstr("parallelrun_refused_reports_total{reason=\"unknown\"} 1\n"));
  for (size_t i = 0; i < kRefusals; ++i) {
    EXPECT_THAT(text,
                HasSubstr(std::string("{reason=\"") + RefusalName(static_cast<RefusalReason>(i))));
  }
}

}  // namespace
}  // namespace parallelrun::coordinator
