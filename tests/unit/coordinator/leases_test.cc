// Leases that nobody holds, and leases that somebody may still hold.
#include <gmock/gmock.h>

#include <string>

#include "ledger/log_format.h"
#include "tests/unit/coordinator/core_harness.h"

namespace parallelrun::coordinator {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

CoordinatorLimits With(bool speculation, uint32_t nodes = 1) {
  CoordinatorLimits limits;
  limits.speculation = speculation;
  limits.nodes = nodes;
  return limits;
}

// A request with numbers; `held` is all that its node has.
job::ExchangeRequest Numbered(const CoordinatorHarness& h, const job::Incarnation& in,
                              uint64_t number, const std::vector<job::LeaseName>& held,
                              bool unheard, uint32_t want = 0) {
  job::ExchangeRequest request = h.Request(in, want);
  request.number = number;
  request.unheard = unheard;
  for (const job::LeaseName& name : held) request.held.push_back({name.id, name.fence, false});
  return request;
}

TEST(CoordinatorLeases, WhatWasLeasedInAnAnswerThatGotLostIsPendingAtOnce) {
  CoordinatorHarness h;
  h.Plan(20);
  const job::Incarnation in = h.Join(0);
  const job::LeaseName kept = h.Send(0, Numbered(h, in, 1, {}, false, 1))->leased.at(0);
  ASSERT_THAT(h.Send(0, Numbered(h, in, 2, {kept}, false, 3))->leased, SizeIs(3));  // lost
  EXPECT_EQ(h.core->running(), 4U);
  EXPECT_THAT(h.Send(0, Numbered(h, in, 3, {kept}, true))->refused, IsEmpty());
  EXPECT_EQ(h.core->running(), 1U);
  EXPECT_EQ(h.core->pending(), 19U);
  EXPECT_EQ(h.state.batches()[1].losses, 0U);
  EXPECT_THAT(h.Report(0, in, kept)->refused, IsEmpty());
}

TEST(CoordinatorLeases, AnAnswerThatIsStillUnderWayIsNotLost) {
  CoordinatorHarness h;
  h.Plan(20);
  const job::Incarnation in = h.Join(0);
  const job::LeaseName coming = h.Send(0, Numbered(h, in, 1, {}, false, 1))->leased.at(0);
  job::ExchangeRequest request = Numbered(h, in, 3, {}, true);
  request.open = 1;
  h.Send(0, request);
  EXPECT_EQ(h.core->running(), 1U);
  EXPECT_THAT(h.Send(0, Numbered(h, in, 4, {coming}, false))->refused, IsEmpty());
  EXPECT_EQ(h.core->running(), 1U);
}

TEST(CoordinatorLeases, ARequestThatComesLateEndsNothingOfLaterAnswers) {
  CoordinatorHarness h;
  h.Plan(20);
  const job::Incarnation in = h.Join(0);
  const job::LeaseName lease = h.Send(0, Numbered(h, in, 5, {}, false, 1))->leased.at(0);
  h.Send(0, Numbered(h, in, 4, {}, true));
  EXPECT_EQ(h.core->running(), 1U);
  EXPECT_THAT(h.Report(0, in, lease)->refused, IsEmpty());
}

TEST(CoordinatorLeases, AnAdoptionThatWasNotHeardIsMadeAgain) {
  CoordinatorHarness h;
  h.Plan(1);
  job::Incarnation in = h.Join(0);
  const auto leased = h.Send(0, Numbered(h, in, 1, {}, false, 1));
  ASSERT_THAT(leased->leased, SizeIs(1));
  h.Start();
  in = h.Join(0);
  job::ExchangeRequest offer = Numbered(h, in, 1, {}, false);
  offer.offered.push_back({0, leased->leased[0].fence, leased->digests[0]});
  ASSERT_THAT(h.Send(0, offer)->adopted, SizeIs(1));  // lost
  offer.number = 2;
  offer.unheard = true;
  const auto again = h.Send(0, offer);
  EXPECT_THAT(again->refused, IsEmpty());
  ASSERT_THAT(again->adopted, SizeIs(1));
  EXPECT_THAT(h.Report(0, in, {0, again->adopted[0].fence})->refused, IsEmpty());
  EXPECT_EQ(h.state.counts().succeeded, 1U);
}

// A result that comes after its lease has expired counts, unless somebody else has the mini-batch.
TEST(CoordinatorLeases, WhatExpiredWhileItsNodeWasThereIsAdoptedAndItsResultToldAgain) {
  CoordinatorHarness h(With(true));
  h.Plan(1);
  const job::Incarnation in = h.Join(0);
  const job::LeaseName lease = h.Lease(0, in);
  for (int i = 0; i < 11; ++i) {
    h.Send(0, h.Request(in));
    h.Advance(seconds(1));
  }
  ASSERT_EQ(h.core->running(), 0U);
  job::ExchangeRequest request = h.Request(in);
  request.held.push_back({lease.id, lease.fence, true});
  request.finished.push_back(h.Done(lease));
  const auto said = h.Send(0, request);
  EXPECT_THAT(said->refused, IsEmpty());
  ASSERT_THAT(said->adopted, SizeIs(1));
  h.Report(0, in, {0, said->adopted[0].fence});
  EXPECT_EQ(h.state.counts().succeeded, 1U);
}

TEST(CoordinatorLeases, ABrokenConnectionShortensThemOnlyWhereTwoMayRunAtOnce) {
  for (const bool speculation : {true, false}) {
    CoordinatorHarness h(With(speculation));
    h.Plan(1);
    const job::Incarnation node = h.Join(0);
    h.Lease(0, node);
    h.core->ConnectionGone(h.Send(0, h.Request(node, 0, 1000))->exchange, h.now());
    h.Advance(seconds(2));
    EXPECT_EQ(h.core->running(), speculation ? 0U : 1U);
    for (int i = 0; i < 8; ++i) h.Advance(seconds(1));
    EXPECT_EQ(h.core->running(), 0U);
  }
}

TEST(CoordinatorLeases, WithoutSpeculationANewEpochWaitsForEveryNode) {
  CoordinatorHarness h(With(false, 2));
  h.Plan(4);
  EXPECT_THAT(h.Send(0, h.Request(h.Join(0), 1))->leased, SizeIs(1)) << "the first one does not";
  h.Start();
  const job::Incarnation one = h.Join(1);
  EXPECT_THAT(h.Send(1, h.Request(one, 4))->leased, IsEmpty());
  const job::Incarnation zero = h.Join(0);
  EXPECT_THAT(h.Send(1, h.Request(one, 4))->leased, IsEmpty()) << "it has told nothing yet";
  h.Send(0, h.Request(zero));
  EXPECT_THAT(h.Send(1, h.Request(one, 1))->leased, SizeIs(1));
}

TEST(CoordinatorLeases, WithoutSpeculationANewEpochWaitsForALeaseAndATenthAtMost) {
  CoordinatorHarness h(With(false, 2));
  h.Plan(4);
  h.Start();
  const job::Incarnation one = h.Join(1);
  for (int i = 0; i < 10; ++i) {
    EXPECT_THAT(h.Send(1, h.Request(one, 4))->leased, IsEmpty());
    h.Advance(seconds(1));
  }
  h.Advance(seconds(1));
  EXPECT_THAT(h.Send(1, h.Request(one, 1))->leased, SizeIs(1));
}

// Its predecessor may still be at work, though it had planned nothing when its ledger was read.
TEST(CoordinatorLeases, WithoutSpeculationTheSecondEpochWaitsWhateverItFound) {
  CoordinatorHarness h(With(false, 2));
  h.Start();
  h.Plan(1);
  const job::Incarnation one = h.Join(1);
  EXPECT_THAT(h.Send(1, h.Request(one, 1))->leased, IsEmpty());
  h.Send(0, h.Request(h.Join(0)));
  EXPECT_THAT(h.Send(1, h.Request(one, 1))->leased, SizeIs(1));
}

// The node that was refused may be in run() until it hears that, or until its own deadline.
TEST(CoordinatorLeases, WithoutSpeculationWhatWasOfferedTwiceWaits) {
  CoordinatorHarness h(With(false, 2));
  h.Plan(1);
  const job::Incarnation before = h.Join(0);
  const auto leased = h.Send(0, h.Request(before, 1));
  const job::LeaseName name = leased->leased.at(0);
  h.Start();
  const std::vector<job::Incarnation> nodes{h.Join(0), h.Join(1)};
  job::LeaseName adopted = name;
  for (uint32_t node = 0; node < 2; ++node) {
    job::ExchangeRequest offers = h.Request(nodes[node]);
    offers.offered = {{name.id, name.fence, leased->digests.at(0)}};
    const auto said = h.Send(node, offers);
    EXPECT_THAT(said->adopted, SizeIs(node == 0 ? 1 : 0));
    EXPECT_THAT(said->refused, SizeIs(node == 0 ? 0 : 1));
    if (node == 0) adopted.fence = said->adopted.at(0).fence;
  }
  h.Report(0, nodes[0], adopted, job::Finished::Kind::kReturned);
  for (int i = 0; i < 11; ++i) {
    EXPECT_THAT(h.Send(0, h.Request(nodes[0], 1))->leased, IsEmpty());
    h.Advance(seconds(1));
  }
  EXPECT_THAT(h.Send(0, h.Request(nodes[0], 1))->leased, SizeIs(1));
}

// Likewise where this epoch has not planned it yet.
TEST(CoordinatorLeases, WithoutSpeculationWhatWasOfferedTooEarlyWaits) {
  CoordinatorHarness h(With(false, 1));
  h.Start();
  const job::Incarnation in = h.Join(0);
  job::ExchangeRequest offers = h.Request(in);
  offers.offered = {{0, {1, 1}, 7}};
  EXPECT_THAT(h.Send(0, offers)->refused, SizeIs(1));
  h.Plan(2);
  const auto first = h.Send(0, h.Request(in, 2));
  EXPECT_THAT(first->leased, SizeIs(1));
  EXPECT_EQ(first->leased.at(0).id, 1U);
  for (int i = 0; i < 10; ++i) h.Advance(seconds(1));
  EXPECT_THAT(h.Send(0, h.Request(in, 2))->leased, SizeIs(1));
}

// A retry that the next epoch knows nothing of could run beside the one that it leases.
TEST(CoordinatorLeases, WithoutSpeculationARetryWaitsUntilItsFailureIsDurable) {
  for (const bool speculation : {false, true}) {
    CoordinatorHarness h(With(speculation, 2));
    h.Plan(1);
    const job::Incarnation zero = h.Join(0);
    const job::Incarnation one = h.Join(1);
    const auto failed = h.Report(0, zero, h.Lease(0, zero), job::Finished::Kind::kFailed);
    const auto asks = h.Send(1, h.Request(one, 1, 10'000));
    EXPECT_EQ(asks->answers, speculation ? 1 : 0);
    h.Sync();
    EXPECT_THAT(failed->settled, SizeIs(1));
    EXPECT_THAT(asks->leased, SizeIs(1));
  }
}

TEST(CoordinatorLeases, NothingIsAnsweredWithoutALookForANewerEpoch) {
  CoordinatorHarness h;
  h.Plan(2);
  const job::Incarnation node = h.Join(0);
  h.Lease(0, node);
  h.files.Put("/job/state/epochs/" + ledger::LogName(2), "");
  h.looks = false;  // the volume is slow
  h.Advance(milliseconds(900));
  EXPECT_EQ(h.Send(0, h.Request(node, 1))->answers, 1) << "it looked a tenth of a lease ago";
  h.looks = true;
  h.Advance(milliseconds(100));
  EXPECT_TRUE(h.core->newest().superseded());
  EXPECT_EQ(h.Send(0, h.Request(node, 1))->answers, 0);
}

TEST(CoordinatorLeases, WithSpeculationANewEpochWaitsForNobody) {
  CoordinatorHarness h(With(true, 2));
  h.Plan(4);
  h.Start();
  EXPECT_THAT(h.Send(1, h.Request(h.Join(1), 1))->leased, SizeIs(1));
}

TEST(CoordinatorLeases, ARenewalWaitsForNoSync) {
  CoordinatorHarness h;
  h.Plan(20);
  const job::Incarnation in = h.Join(0);
  const job::LeaseName lease = h.Lease(0, in);
  const job::LeaseName other = h.Lease(0, in);
  const auto report = h.Report(0, in, lease);
  EXPECT_EQ(report->answers, 0);  // not durable yet
  job::ExchangeRequest renewal = h.Request(in);
  for (const job::LeaseName& name : {lease, other})
    renewal.held.push_back({name.id, name.fence, true});
  const auto renewed = h.Send(0, renewal);
  EXPECT_EQ(renewed->answers, 1);
  EXPECT_THAT(renewed->settled, IsEmpty());
  EXPECT_THAT(renewed->refused, IsEmpty());
  h.Sync();
  EXPECT_THAT(report->settled, SizeIs(1));
  EXPECT_THAT(h.Send(0, renewal)->settled, SizeIs(1));
}

}  // namespace
}  // namespace parallelrun::coordinator
