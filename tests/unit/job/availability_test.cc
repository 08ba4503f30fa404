#include "job/availability.h"

#include <gmock/gmock.h>

namespace parallelrun::job {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const WorkInstant kStart{seconds(1000)};
const Incarnation kFirst{1, 1};
const Incarnation kOther{1, 2};

TabularChunk SomeSlices(uint32_t count) {
  TabularChunk tabular;
  tabular.path = "/in/a.csv";
  for (uint32_t i = 0; i < count; ++i) tabular.slices.push_back({i * 10ULL, 10, 5});
  return tabular;
}

class AvailabilityTest : public ::testing::Test {
 protected:
  void SetUp() override {
    PlanChunkRecord chunk;
    chunk.content = SomeSlices(4);
    ASSERT_TRUE(state_.Apply(chunk, {}, {}).ok());
    table_.Plan(1, 4);
    table_.Durable(1);
  }
  void TearDown() override { EXPECT_EQ(table_.Check(), ""); }
  void Settle(BatchId id, const Fence& fence) {
    ResultRecord result;
    result.id = id;
    result.fence = fence;
    ASSERT_TRUE(state_.Apply(result, {}, {}).ok());
    table_.Settle(id);
  }
  void EndAll(BatchId id) {
    while (const auto lease = table_.Of(id).lease) table_.End({id, lease->fence});
  }

  JobState state_;
  Availability table_{state_, 1, {seconds(10), 3, true}, true, kStart};
};

TEST_F(AvailabilityTest, GrantsTheLowestPendingWithGrowingFences) {
  const auto a = table_.Grant({0, kFirst}, kStart);
  const auto b = table_.Grant({1, kOther}, kStart);
  ASSERT_TRUE(a && b);
  EXPECT_EQ(a->id, 0u);
  EXPECT_EQ(b->id, 1u);
  EXPECT_LT(a->fence, b->fence);
  EXPECT_EQ(table_.live(), 2u);
  EXPECT_EQ(table_.pending(), 2u);
}

TEST_F(AvailabilityTest, GrantsNothingBeyondWhatIsDurable) {
  JobState state;
  Availability table(state, 1, {seconds(10), 3, true}, true, kStart);
  PlanChunkRecord chunk;
  chunk.content = SomeSlices(1);
  ASSERT_TRUE(state.Apply(chunk, {}, {}).ok());
  table.Plan(7, 1);
  table.Durable(6);
  EXPECT_FALSE(table.Grant({0, kFirst}, kStart));
  EXPECT_EQ(table.pending(), 0u);
  table.Durable(7);
  EXPECT_TRUE(table.Grant({0, kFirst}, kStart));
  EXPECT_FALSE(table.Grant({0, kFirst}, kStart));
}

TEST_F(AvailabilityTest, ReturnedMiniBatchesComeFirstAndOnce) {
  for (int i = 0; i < 3; ++i) table_.Grant({0, kFirst}, kStart);
  EndAll(1);
  EndAll(0);
  EXPECT_EQ(table_.Grant({1, kOther}, kStart)->id, 0u);
  EXPECT_EQ(table_.Grant({1, kOther}, kStart)->id, 1u);
  EXPECT_EQ(table_.Grant({1, kOther}, kStart)->id, 3u);
  EXPECT_FALSE(table_.Grant({1, kOther}, kStart));
}

TEST_F(AvailabilityTest, SettledMiniBatchesAreNeverGrantedAgain) {
  const auto lease = table_.Grant({0, kFirst}, kStart);
  Settle(lease->id, lease->fence);
  for (int i = 0; i < 3; ++i) EXPECT_NE(table_.Grant({0, kFirst}, kStart)->id, lease->id);
  EXPECT_FALSE(table_.Grant({0, kFirst}, kStart));
}

TEST_F(AvailabilityTest, DeadlineIsExclusiveAndRenewalMovesIt) {
  const auto lease = table_.Grant({0, kFirst}, kStart);
  EXPECT_EQ(table_.Expire(kStart + seconds(10) - Duration(1)).size(), 0u);
  EXPECT_TRUE(table_.Renew(kFirst, {lease->id, lease->fence, true}, kStart + seconds(9)));
  EXPECT_EQ(table_.Expire(kStart + seconds(18)).size(), 0u);
  EXPECT_EQ(table_.Expire(kStart + seconds(19)).size(), 1u);
  EXPECT_FALSE(table_.Has(kFirst, {lease->id, lease->fence}));
  EXPECT_FALSE(table_.Renew(kFirst, {lease->id, lease->fence, true}, kStart + seconds(19)));
}

TEST_F(AvailabilityTest, OnlyTheHolderWithTheFenceRenewsAndHolds) {
  const auto lease = table_.Grant({0, kFirst}, kStart);
  EXPECT_FALSE(table_.Renew(kOther, {lease->id, lease->fence, false}, kStart));
  const Fence stale{1, lease->fence.number - 1};
  EXPECT_FALSE(table_.Renew(kFirst, {lease->id, stale, false}, kStart));
  EXPECT_FALSE(table_.Has(kFirst, {lease->id, stale}));
  EXPECT_TRUE(table_.Has(kFirst, {lease->id, lease->fence}));
}

TEST_F(AvailabilityTest, FirstOfferWins) {
  const auto adopted = table_.Adopt({0, kFirst}, 2, true, kStart);
  ASSERT_TRUE(adopted);
  EXPECT_FALSE(table_.Adopt({1, kOther}, 2, true, kStart));
  for (int i = 0; i < 3; ++i) EXPECT_NE(table_.Grant({1, kOther}, kStart)->id, 2u);
}

TEST_F(AvailabilityTest, ANodeAdoptsItsOwnLeaseOfAnEarlierIncarnation) {
  const auto lease = table_.Grant({0, kFirst}, kStart);
  const auto adopted = table_.Adopt({0, {1, 3}}, lease->id, true, kStart);
  ASSERT_TRUE(adopted);
  EXPECT_GT(*adopted, lease->fence);
  EXPECT_FALSE(table_.Has(kFirst, {lease->id, lease->fence}));
  EXPECT_EQ(table_.HeldCount(0), 1u);
}

TEST_F(AvailabilityTest, SettledOrUnplannedMiniBatchesAreNotAdopted) {
  const auto lease = table_.Grant({0, kFirst}, kStart);
  Settle(lease->id, lease->fence);
  EXPECT_FALSE(table_.Adopt({0, kFirst}, lease->id, true, kStart));
  EXPECT_FALSE(table_.Adopt({0, kFirst}, 4, true, kStart));
}

TEST_F(AvailabilityTest, ABrokenConnectionShortensUntilTheNextRenewal) {
  const auto first = table_.Grant({0, kFirst}, kStart);
  const auto second = table_.Grant({0, kFirst}, kStart);
  table_.Grant({1, kOther}, kStart);
  table_.Shorten(0, kStart, seconds(2));
  EXPECT_EQ(table_.Of(first->id).lease->deadline, kStart + seconds(2));
  EXPECT_TRUE(table_.Renew(kFirst, {second->id, second->fence, false}, kStart + seconds(1)));
  EXPECT_EQ(table_.Expire(kStart + seconds(2) - Duration(1)).size(), 0u);
  EXPECT_EQ(table_.Expire(kStart + seconds(2)).size(), 1u);
  EXPECT_EQ(table_.HeldCount(0), 1u);
  EXPECT_EQ(table_.HeldCount(1), 1u);
  EXPECT_EQ(table_.Of(2).lease->deadline, kStart + seconds(10));
}

// --- suspects

class SuspectsTest : public AvailabilityTest {
 protected:
  void Lose(BatchId id, int times) {
    for (int i = 0; i < times; ++i) ASSERT_TRUE(state_.Apply(LostRecord{id, {}}, {}, {}).ok());
    table_.Reconsider(id);
  }
  // Their node died while it held them.
  void Narrow(uint32_t most, const std::vector<BatchId>& ids) {
    ASSERT_TRUE(state_.Apply(CompanyRecord{most, ids}, {}, {}).ok());
    for (const BatchId id : ids) table_.Reconsider(id);
  }
  std::vector<BatchId> GrantAll(uint32_t node, const Incarnation& incarnation) {
    std::vector<BatchId> ids;
    const uint64_t available = table_.Available(node);
    while (const auto lease = table_.Grant({node, incarnation}, kStart)) ids.push_back(lease->id);
    EXPECT_LE(ids.size(), available);
    EXPECT_EQ(ids.empty(), available == 0);
    return ids;
  }
};

TEST_F(SuspectsTest, AreLeasedLastAndAlone) {
  Lose(1, 2);
  for (const BatchId id : {0U, 2U, 3U}) EXPECT_EQ(table_.Grant({0, kFirst}, kStart)->id, id);
  EXPECT_EQ(table_.Available(0), 0u);
  EXPECT_FALSE(table_.Grant({0, kFirst}, kStart));  // it holds others
  EXPECT_EQ(table_.Available(1), 1u);
  EXPECT_EQ(table_.Grant({1, kOther}, kStart)->id, 1u);
  // While it does, nothing else is given to that node.
  EndAll(3);
  EXPECT_EQ(table_.Available(1), 0u);
  EXPECT_FALSE(table_.Grant({1, kOther}, kStart));
  EXPECT_EQ(table_.Grant({0, kFirst}, kStart)->id, 3u);
  EndAll(1);
  EndAll(0);
  EXPECT_EQ(table_.Grant({1, kOther}, kStart)->id, 0u);
}

TEST_F(SuspectsTest, ThatWithTheFewestLossesComesFirst) {
  Lose(0, 3);
  Lose(1, 2);
  Lose(2, 4);
  Lose(3, 2);
  for (const BatchId id : {1U, 3U, 0U, 2U}) {
    EXPECT_EQ(table_.Grant({0, kFirst}, kStart)->id, id);
    Lose(id, 3);
    EndAll(id);
  }
}

TEST_F(SuspectsTest, HaveNoMoreCompanyThanTheyMay) {
  Narrow(2, {0, 1, 2});
  // What is above suspicion comes first, and is not put at risk.
  EXPECT_EQ(GrantAll(0, kFirst), std::vector<BatchId>{3});
  EXPECT_EQ(GrantAll(1, kOther), (std::vector<BatchId>{0, 1}));
  EndAll(3);
  EXPECT_EQ(GrantAll(1, kOther), std::vector<BatchId>{});
  EXPECT_EQ(GrantAll(0, kFirst), std::vector<BatchId>{3});
  EndAll(1);
  EXPECT_EQ(GrantAll(1, kOther), std::vector<BatchId>{1});
}

TEST_F(SuspectsTest, ThatMayHaveMostCompanyComeFirst) {
  Narrow(3, {0, 1, 2, 3});
  Narrow(1, {0});
  Narrow(2, {1});
  Narrow(3, {1});  // it stays with less
  EXPECT_EQ(GrantAll(0, kFirst), (std::vector<BatchId>{2, 3}));
  EXPECT_EQ(GrantAll(1, kOther), std::vector<BatchId>{1});
  EndAll(2);
  Settle(3, {});
  EXPECT_EQ(GrantAll(0, kFirst), std::vector<BatchId>{2});
  Settle(2, {});
  EXPECT_EQ(GrantAll(0, kFirst), std::vector<BatchId>{0});
}

TEST_F(SuspectsTest, OfTheLedgerAreKnownToTheNextEpoch) {
  Narrow(1, {0, 2});
  Availability next(state_, 2, {seconds(10), 3, true}, false, kStart);
  EXPECT_EQ(next.Available(0), 2u);
  EXPECT_EQ(next.Grant({0, kFirst}, kStart)->id, 1u);
  EXPECT_EQ(next.Grant({0, kFirst}, kStart)->id, 3u);
  EXPECT_FALSE(next.Grant({0, kFirst}, kStart));
  EXPECT_EQ(next.Grant({1, kOther}, kStart)->id, 0u);
  EXPECT_FALSE(next.Grant({1, kOther}, kStart));
}

TEST_F(SuspectsTest, GetNoSecondLease) {
  Narrow(2, {0});
  for (int i = 0; i < 3; ++i) table_.Grant({0, kFirst}, kStart);
  const auto suspect = table_.Grant({2, {1, 3}}, kStart);
  ASSERT_EQ(suspect->id, 0u);
  ASSERT_TRUE(table_.Renew({1, 3}, {0, suspect->fence, true}, kStart));
  EXPECT_FALSE(table_.GrantSecond({1, kOther}, seconds(1), kStart + seconds(5)));
}

TEST_F(SuspectsTest, OneLossMakesNone) {
  Lose(0, 1);
  EXPECT_EQ(table_.Grant({0, kFirst}, kStart)->id, 0u);
  EXPECT_EQ(table_.Grant({0, kFirst}, kStart)->id, 1u);
}

TEST_F(SuspectsTest, AreNotAdoptedIntoCompanyNorOthersIntoTheirs) {
  Lose(1, 2);
  table_.Grant({0, kFirst}, kStart);
  EXPECT_FALSE(table_.Adopt({0, kFirst}, 1, true, kStart));
  EXPECT_TRUE(table_.Adopt({1, kOther}, 1, true, kStart));
  EXPECT_FALSE(table_.Adopt({1, kOther}, 2, true, kStart));
  EXPECT_TRUE(table_.Adopt({1, {1, 3}}, 1, true, kStart));  // registered again
}

TEST_F(SuspectsTest, WhatAnEarlierEpochSawStartIsWithheld) {
  Lose(1, 2);
  ASSERT_TRUE(state_.Apply(StartedRecord{1, {1, 7}, true}, {}, {}).ok());
  Availability next(state_, 2, {seconds(10), 3, true}, false, kStart);
  for (int i = 0; i < 3; ++i) next.Grant({0, kFirst}, kStart);
  EXPECT_EQ(next.Available(1), 0u);
  EXPECT_FALSE(next.Grant({1, kOther}, kStart));
  EXPECT_THAT(next.TimePassed(kStart + seconds(11) - Duration(1)), IsEmpty());
  EXPECT_THAT(next.TimePassed(kStart + seconds(11)), ElementsAre(1));
  EXPECT_EQ(next.Grant({1, kOther}, kStart)->id, 1u);
}

// --- a second lease at the tail

class SpeculationTest : public AvailabilityTest {
 protected:
  std::optional<LeaseName> Second(WorkInstant now) {
    return table_.GrantSecond({1, kOther}, seconds(5), now);
  }
  LeaseName StartFirst() {
    const LeaseName lease = *table_.Grant({0, kFirst}, kStart);
    table_.Renew(kFirst, {lease.id, lease.fence, true}, kStart);
    return lease;
  }
};

TEST_F(SpeculationTest, TheSlowestOfAnotherNodeGetsOne) {
  const LeaseName first = StartFirst();
  EXPECT_FALSE(Second(kStart + seconds(5)));
  const auto second = Second(kStart + seconds(6));
  ASSERT_TRUE(second);
  EXPECT_EQ(second->id, first.id);
  EXPECT_GT(second->fence, first.fence);
  EXPECT_EQ(table_.live(), 1u);
  EXPECT_FALSE(Second(kStart + seconds(6)));
  EXPECT_TRUE(table_.Has(kFirst, {first.id, first.fence}));
  EXPECT_TRUE(table_.Has(kOther, {second->id, second->fence}));
}

TEST_F(SpeculationTest, NotWhereBothCouldFailATryTooMany) {
  for (const bool last : {true, false}) {
    Availability table(state_, 2, {seconds(10), last ? 1U : 2U, true}, true, kStart);
    const LeaseName lease = *table.Grant({0, kFirst}, kStart);
    table.Renew(kFirst, {lease.id, lease.fence, true}, kStart);
    EXPECT_EQ(table.GrantSecond({1, kOther}, seconds(5), kStart + seconds(6)).has_value(), !last);
  }
}

TEST_F(SpeculationTest, EitherMayEndFirst) {
  const LeaseName first = StartFirst();
  const LeaseName second = *Second(kStart + seconds(6));
  table_.End(first);
  EXPECT_EQ(table_.live(), 1u);
  EXPECT_TRUE(table_.Has(kOther, {second.id, second.fence}));
  EXPECT_EQ(table_.HeldCount(0), 0u);
  table_.End(second);
  EXPECT_EQ(table_.live(), 0u);
  EXPECT_EQ(table_.Grant({0, kFirst}, kStart)->id, first.id);
}

TEST_F(SpeculationTest, AResultEndsBoth) {
  const LeaseName first = StartFirst();
  const LeaseName second = *Second(kStart + seconds(6));
  Settle(second.id, second.fence);
  EXPECT_FALSE(table_.Has(kFirst, {first.id, first.fence}));
  EXPECT_EQ(table_.HeldCount(0) + table_.HeldCount(1), 0u);
}

}  // namespace
}  // namespace parallelrun::job
