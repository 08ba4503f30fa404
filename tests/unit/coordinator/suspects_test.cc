// Mini-batches whose nodes die, that fail until they are split, and that take too long.
#include <gmock/gmock.h>

#include "job/record_codec.h"
#include "tests/unit/coordinator/core_harness.h"

namespace parallelrun::coordinator {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Kind = job::Finished::Kind;

std::vector<job::BatchId> Ids(const std::vector<job::LeaseName>& names) {
  std::vector<job::BatchId> ids;
  for (const job::LeaseName& name : names) ids.push_back(name.id);
  return ids;
}

// Has node 0's agent die `times` times while run() works on mini-batch 0.
void LoseTheFirst(CoordinatorHarness& h, int times) {
  for (int i = 0; i < times; ++i) {
    const job::Incarnation in = h.Join(0, "agent" + std::to_string(i));
    h.Hold(0, in, h.Lease(0, in));
  }
  h.Join(0, "agent" + std::to_string(times));
}

TEST(Suspects, AfterTwoLossesItIsLeasedLastAndAlone) {
  CoordinatorHarness h;
  h.Plan(40);
  LoseTheFirst(h, 2);
  ASSERT_EQ(h.state.batches()[0].losses, 2U);
  const job::Incarnation in = h.Join(0, "agent2");
  const job::Incarnation other = h.Join(1);
  std::vector<job::LeaseName> leased;
  for (int i = 0; i < 39; ++i) leased.push_back(h.Lease(0, in));
  EXPECT_THAT(h.Send(0, h.Request(in, 5))->leased, IsEmpty());
  EXPECT_THAT(Ids(h.Send(1, h.Request(other, 5))->leased), ElementsAre(0));
  EXPECT_THAT(h.Send(1, h.Request(other, 5))->leased, IsEmpty());
}

TEST(Suspects, AParkedRequestIsNotAnsweredWithNothing) {
  CoordinatorHarness h;
  h.Plan(2);
  LoseTheFirst(h, 2);
  const job::Incarnation in = h.Join(0, "agent2");
  const job::LeaseName normal = h.Lease(0, in);
  ASSERT_EQ(normal.id, 1U);
  const auto parked = h.Send(0, h.Request(in, 1, 20'000));
  EXPECT_EQ(parked->answers, 0);
  job::ExchangeRequest done = h.Request(in, 1);
  done.finished.push_back(h.Done(normal));
  const auto said = h.Send(0, done);
  h.Sync();
  EXPECT_THAT(Ids(said->leased), ElementsAre(0));
}

TEST(Suspects, ADeathThatIsHeardOfAfterTheLeaseExpiredIsALoss) {
  CoordinatorHarness h;
  h.Plan(2);
  const job::Incarnation in = h.Join(0, "first");
  h.Hold(0, in, h.Lease(0, in));
  h.Advance(seconds(1));
  for (int i = 0; i < 12; ++i) h.Advance(seconds(1));
  ASSERT_EQ(h.core->running(), 0U);
  EXPECT_EQ(h.state.batches()[0].losses, 0U);
  h.Join(0, "second");
  EXPECT_EQ(h.state.batches()[0].losses, 1U);
}

TEST(Suspects, AnAgentThatComesBackLostNothing) {
  CoordinatorHarness h;
  h.Plan(2);
  job::Incarnation in = h.Join(0, "first");
  const job::LeaseName lease = h.Lease(0, in);
  h.Hold(0, in, lease);
  for (int i = 0; i < 12; ++i) h.Advance(seconds(1));
  in = h.Join(0, "first");
  h.Join(0, "second");
  EXPECT_EQ(h.state.batches()[0].losses, 0U);
}

// The node and the coordinator die together.
TEST(Suspects, WhatHadStartedUnderAnEarlierEpochAndIsNotOfferedIsALoss) {
  CoordinatorLimits limits;
  limits.speculation = true;  // without it the new epoch leases nothing for a while
  CoordinatorHarness h(limits);
  h.Plan(2);
  LoseTheFirst(h, 1);
  const job::Incarnation in = h.Join(0, "agent1");
  h.Hold(0, in, h.Lease(0, in));
  h.Sync();
  h.Start();
  ASSERT_EQ(h.state.started().size(), 1U);
  const job::Incarnation later = h.Join(1);
  const auto other = h.Send(1, h.Request(later, 5));
  ASSERT_THAT(Ids(other->leased), ElementsAre(1));
  for (int i = 0; i < 10; ++i) {
    h.Hold(1, later, other->leased[0]);
    h.Advance(seconds(1));
  }
  EXPECT_EQ(h.state.batches()[0].losses, 1U);
  h.Advance(seconds(1));
  EXPECT_EQ(h.state.batches()[0].losses, 2U);
  EXPECT_THAT(Ids(h.Send(0, h.Request(h.Join(0, "agent2"), 5))->leased), ElementsAre(0));
}

TEST(Suspects, WhatIsOfferedToTheNextEpochIsNoLoss) {
  CoordinatorHarness h;
  h.Plan(2);
  LoseTheFirst(h, 1);
  job::Incarnation in = h.Join(0, "agent1");
  const auto leased = h.Send(0, h.Request(in, 1));
  h.Hold(0, in, leased->leased[0]);
  h.Sync();
  h.Start();
  in = h.Join(0, "agent1");
  job::ExchangeRequest offer = h.Request(in);
  offer.offered.push_back({0, leased->leased[0].fence, leased->digests[0]});
  const auto said = h.Send(0, offer);
  ASSERT_THAT(said->adopted, SizeIs(1));
  for (int i = 0; i < 12; ++i) {
    h.Hold(0, in, {0, said->adopted[0].fence});
    h.Advance(seconds(1));
  }
  EXPECT_EQ(h.state.batches()[0].losses, 1U);
}

TEST(Suspects, WhatWasHandedBackIsNoLossInTheNextEpoch) {
  CoordinatorHarness h;
  h.Plan(2);
  LoseTheFirst(h, 1);
  const job::Incarnation in = h.Join(0, "agent1");
  h.Hold(0, in, h.Lease(0, in));
  h.core->Leave(0, in, h.now());
  h.Sync();
  h.Start();
  EXPECT_THAT(h.state.started(), IsEmpty());
}

// --- run() ends its node before it is heard of

// Node 0 leases what it can get, and dies if `killer` is among it; else it finishes that. Returns
// how many times it died until all is settled.
int DeathsUntilSettled(CoordinatorHarness& h, job::BatchId killer, uint32_t want) {
  int deaths = 0;
  while (!h.state.verdict() && deaths < 100) {
    const job::Incarnation in = h.Join(0, "agent" + std::to_string(deaths));
    for (;;) {
      const auto said = h.Send(0, h.Request(in, want));
      if (said->leased.empty()) break;
      const std::vector<job::BatchId> ids = Ids(said->leased);
      if (std::find(ids.begin(), ids.end(), killer) != ids.end()) {
        ++deaths;
        break;
      }
      job::ExchangeRequest done = h.Request(in);
      for (const job::LeaseName& name : said->leased) done.finished.push_back(h.Done(name));
      h.Send(0, done);
      h.Sync();
    }
    h.Join(0, "agent" + std::to_string(deaths));
    h.Sync();
  }
  return deaths;
}

TEST(Killers, OneAmongManyIsAloneAfterAsManyDeathsAsItTakesToHalveThem) {
  CoordinatorLimits limits;
  limits.processes = 1;
  CoordinatorHarness h(limits);
  h.Plan(4096);
  // 2,048 are held at once: half of all that is pending.
  const int deaths = DeathsUntilSettled(h, 1000, 2048);
  EXPECT_GE(deaths, 10);
  EXPECT_LE(deaths, 10 + 12);
  EXPECT_EQ(h.state.counts().failed, 1U);
  EXPECT_EQ(h.state.counts().succeeded, 4095U);
  EXPECT_EQ(h.state.counts().lost, 1U);
  ASSERT_EQ(h.state.errors().Top(1).size(), 1U);
  const job::DistinctError error = h.state.errors().Top(1)[0];
  EXPECT_EQ(error.kind, "LostTooOften");
  EXPECT_THAT(error.message, ::testing::HasSubstr("mini-batch 1000 (rows of /in/rows.csv) ends "));
}

// A node that held the first eight has died, for whatever reason.
void LoseANode(CoordinatorHarness& h) {
  ASSERT_THAT(h.Send(0, h.Request(h.Join(0, "zeroth"), 8))->leased, SizeIs(8));
}

TEST(Killers, ADeathAloneMakesNoSuspects) {
  CoordinatorHarness h;
  h.Plan(40);
  LoseANode(h);
  const auto held = h.Send(0, h.Request(h.Join(0, "first"), 8));
  ASSERT_THAT(held->leased, SizeIs(8));
  for (const job::LeaseName& name : held->leased) {
    EXPECT_LT(name.id, 8U) << "again at once, before all others";
    EXPECT_EQ(h.state.companies().Of(name.id), job::kAnyCompany);
  }
}

TEST(Killers, WhatWasHeldBesideOneIsNobodysLoss) {
  CoordinatorHarness h;
  h.Plan(40);
  LoseANode(h);
  const job::Incarnation in = h.Join(0, "first");
  const auto held = h.Send(0, h.Request(in, 8));
  ASSERT_THAT(held->leased, SizeIs(8));
  h.Join(0, "second");
  for (const job::LeaseName& name : held->leased) {
    EXPECT_EQ(h.state.batch(name.id).losses, 0U);
    EXPECT_EQ(h.state.companies().Of(name.id), 4U);
  }
  EXPECT_EQ(h.core->pending(), 40U);
}

TEST(Killers, TheNextEpochGoesOnWhereTheLastOneWas) {
  CoordinatorHarness h;
  h.Plan(40);
  LoseANode(h);
  const auto held = h.Send(0, h.Request(h.Join(0, "first"), 8));
  h.Join(0, "second");
  h.Sync();
  h.Start();
  for (const job::LeaseName& name : held->leased) EXPECT_EQ(h.state.companies().Of(name.id), 4U);
  // Nor does a person who continues the run start it over.
  h.Start(2);
  EXPECT_EQ(h.state.companies().Of(held->leased[0].id), 4U);
}

// Cut off first: nobody held them any more when the death was heard of.
TEST(Killers, ADeathThatIsHeardOfAfterTheLeasesExpiredCountsToo) {
  CoordinatorHarness h;
  h.Plan(40);
  LoseANode(h);
  const auto held = h.Send(0, h.Request(h.Join(0, "first"), 8));
  for (int i = 0; i < 12; ++i) h.Advance(seconds(1));
  ASSERT_EQ(h.core->running(), 0U);
  h.Join(0, "second");
  for (const job::LeaseName& name : held->leased) EXPECT_EQ(h.state.companies().Of(name.id), 4U);
}

TEST(Killers, AnAgentThatLeavesOrComesBackTellsNothingOfWhatItHeld) {
  CoordinatorHarness h;
  h.Plan(40);
  job::Incarnation in = h.Join(0, "first");
  const auto held = h.Send(0, h.Request(in, 8));
  in = h.Join(0, "first");
  h.core->Leave(0, in, h.now());
  h.Join(0, "second");
  for (const job::LeaseName& name : held->leased) {
    EXPECT_EQ(h.state.companies().Of(name.id), job::kAnyCompany);
  }
}

// --- isolateFailures

CoordinatorLimits Isolating(uint32_t tries = 2) {
  CoordinatorLimits limits;
  limits.spec.isolate_failures = true;
  limits.spec.run_max_try = static_cast<int32_t>(tries);
  return limits;
}

void PlanFour(CoordinatorHarness& h) {
  job::TabularChunk chunk;
  chunk.path = "/in/rows.csv";
  chunk.format = "{}";
  chunk.slices.push_back({0, 40, 4});
  job::PlanChunkRecord record;
  record.content = chunk;
  std::string encoded;
  job::EncodeRecord(record, encoded);
  ASSERT_TRUE(h.core->AddChunk(encoded, h.now()).ok());
  h.core->EndPlan(h.now());
  h.Sync();
}

TEST(Isolation, AMiniBatchThatUsedItsTriesIsSplitDownToTheBadItem) {
  CoordinatorHarness h(Isolating());
  PlanFour(h);
  const job::Incarnation in = h.Join(0);
  std::vector<std::string> failed;
  while (!h.state.verdict()) {
    const job::LeaseName lease = h.Lease(0, in);
    const job::MiniBatch& batch = h.state.batch(lease.id);
    const uint32_t first = h.state.FirstItemOf(lease.id);
    const bool bad = first <= 2 && 2 < first + batch.items;
    if (bad) failed.push_back(job::MiniBatchText(lease.id));
    job::ExchangeRequest request = h.Request(in);
    request.finished.push_back(h.Done(lease, bad ? Kind::kFailed : Kind::kSucceeded));
    request.finished[0].items_succeeded = bad ? 0 : batch.items;
    h.Send(0, request);
    h.Sync();
    ASSERT_EQ(h.core->running() + h.core->pending() + h.state.counts().succeeded, 1U);
  }
  // Two tries whole, one of the half, two of the single item.
  EXPECT_THAT(failed, ElementsAre("0", "0", "0/3", "0/6", "0/6"));
  EXPECT_EQ(h.state.counts().items_failed, 1U);
  EXPECT_EQ(h.state.counts().items_succeeded, 3U);
  EXPECT_EQ(h.state.verdict()->reason, "CompletedWithFailures");
}

// Mini-batches that are reported as failed by `cause` until all are settled.
std::vector<std::string> FailAll(CoordinatorHarness& h, job::Cause cause) {
  const job::Incarnation in = h.Join(0);
  std::vector<std::string> failed;
  while (!h.state.verdict()) {
    const job::LeaseName lease = h.Lease(0, in);
    failed.push_back(job::MiniBatchText(lease.id));
    job::ExchangeRequest request = h.Request(in);
    request.finished.push_back(h.Done(lease, Kind::kFailed));
    request.finished[0].cause = cause;
    h.Send(0, request);
    h.Sync();
  }
  return failed;
}

TEST(Misfits, AreNotTriedAgain) {
  CoordinatorLimits limits;
  limits.spec.run_max_try = 3;
  CoordinatorHarness input(limits);
  input.Plan(1);
  EXPECT_THAT(FailAll(input, job::Cause::kInput), ElementsAre("0", "0", "0"));
  CoordinatorHarness misfit(limits);
  misfit.Plan(1);
  EXPECT_THAT(FailAll(misfit, job::Cause::kMisfit), ElementsAre("0"));
}

TEST(Misfits, AreSplitDownToTheRowWithoutASecondTry) {
  CoordinatorHarness h(Isolating(3));
  PlanFour(h);
  EXPECT_THAT(FailAll(h, job::Cause::kMisfit),
              ::testing::UnorderedElementsAre("0", "0/2", "0/3", "0/4", "0/5", "0/6", "0/7"));
}

TEST(Isolation, ItGoesOnInTheNextEpochAndAcceptsWhatIsOffered) {
  CoordinatorHarness h(Isolating(1));
  PlanFour(h);
  job::Incarnation in = h.Join(0);
  h.Report(0, in, h.Lease(0, in), Kind::kFailed);
  h.Sync();
  const auto leased = h.Send(0, h.Request(in, 1));
  h.Start();
  in = h.Join(0);
  job::ExchangeRequest offer = h.Request(in, 5);
  offer.offered.push_back({leased->leased[0].id, leased->leased[0].fence, leased->digests[0]});
  const auto said = h.Send(0, offer);
  ASSERT_THAT(said->adopted, SizeIs(1));
  EXPECT_EQ(said->adopted[0].id, job::FirstPiece(0));
  EXPECT_THAT(Ids(said->leased), ElementsAre(job::SecondPiece(0)));
}

TEST(Isolation, WithoutItAMiniBatchFailsWhole) {
  CoordinatorLimits limits;
  limits.spec.run_max_try = 1;
  CoordinatorHarness h(limits);
  PlanFour(h);
  const job::Incarnation in = h.Join(0);
  h.Report(0, in, h.Lease(0, in), Kind::kFailed);
  EXPECT_EQ(h.state.counts().failed, 1U);
  EXPECT_EQ(h.state.counts().items_failed, 4U);
}

// --- speculation

struct Stragglers {
  explicit Stragglers(CoordinatorLimits limits) : h(limits) {
    h.Plan(2);
    slow = h.Join(0);
    idle = h.Join(1);
    first = h.Lease(0, slow);
    const job::LeaseName other = h.Lease(1, idle);
    h.Report(1, idle, other);
    h.Sync();
  }
  // Both nodes are heard of each second.
  std::shared_ptr<CoordinatorHarness::Said> Wait(int times) {
    std::shared_ptr<CoordinatorHarness::Said> said;
    for (int i = 0; i < times; ++i) {
      h.Hold(0, slow, first);
      said = h.Send(1, h.Request(idle, 2));
      h.Advance(seconds(1));
    }
    return said;
  }
  CoordinatorHarness h;
  job::Incarnation slow;
  job::Incarnation idle;
  job::LeaseName first;
};

TEST(Speculation, AnIdleNodeTriesWhatTakesLongAndTheFirstResultCounts) {
  CoordinatorLimits limits;
  limits.speculation = true;
  limits.slow_least = seconds(1);
  Stragglers s(limits);
  EXPECT_THAT(s.Wait(1)->leased, IsEmpty());
  const auto said = s.Wait(2);
  ASSERT_THAT(said->leased, SizeIs(1));
  EXPECT_EQ(said->leased[0].id, s.first.id);
  s.h.Report(1, s.idle, said->leased[0]);
  s.h.Sync();
  EXPECT_TRUE(s.h.state.all_settled());
  const auto late = s.h.Report(0, s.slow, s.first);
  EXPECT_THAT(late->settled, IsEmpty());
  EXPECT_THAT(late->refused, ElementsAre(s.first));
  EXPECT_EQ(s.h.state.counts().succeeded, 2U);
}

TEST(Speculation, OffMeansNever) {
  Stragglers s(CoordinatorLimits{});
  EXPECT_THAT(s.Wait(8)->leased, IsEmpty());
}

TEST(Speculation, BothMayFailWithoutATryTooMany) {
  CoordinatorLimits limits;
  limits.speculation = true;
  limits.slow_least = seconds(1);
  limits.spec.run_max_try = 2;
  Stragglers s(limits);
  const auto said = s.Wait(3);
  ASSERT_THAT(said->leased, SizeIs(1));
  s.h.Report(0, s.slow, s.first, Kind::kFailed);
  EXPECT_EQ(s.h.state.counts().failed, 0U);
  s.h.Report(1, s.idle, said->leased[0], Kind::kFailed);
  EXPECT_EQ(s.h.state.batches()[s.first.id].failed_attempts, 2U);
  EXPECT_EQ(s.h.state.counts().failed, 1U);
}

}  // namespace
}  // namespace parallelrun::coordinator
