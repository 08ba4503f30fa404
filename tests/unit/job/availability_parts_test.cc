// What Availability is made of: the index of what is ready, blocks, leases.
#include <gmock/gmock.h>

#include <random>
#include <set>

#include "job/blocks.h"
#include "job/leases.h"
#include "job/ready_ids.h"

namespace parallelrun::job {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ReadyIds, TheLowestIsFoundHoweverFarApartTheyAre) {
  ReadyIds ids;
  EXPECT_FALSE(ids.First());
  const std::vector<uint32_t> far = {1U << 26, 1U << 24, (1U << 18) + 5, 4096, 64, 62, 0};
  for (const uint32_t id : far) {
    EXPECT_TRUE(ids.Add(id));
    EXPECT_FALSE(ids.Add(id));
    EXPECT_EQ(ids.First(), id);
    EXPECT_TRUE(ids.Contains(id));
    EXPECT_FALSE(ids.Contains(id + 1));
  }
  for (auto id = far.rbegin(); id != far.rend(); ++id) {
    EXPECT_EQ(ids.First(), *id);
    EXPECT_TRUE(ids.Remove(*id));
    EXPECT_FALSE(ids.Remove(*id));
  }
  EXPECT_FALSE(ids.First());
}

TEST(ReadyIds, SaysWhatASetSays) {
  std::mt19937 random(1);
  ReadyIds ids;
  std::set<uint32_t> plain;
  for (int i = 0; i < 20'000; ++i) {
    const auto id = static_cast<uint32_t>(random() % 9000);
    if (random() % 2 == 0) {
      ASSERT_EQ(ids.Add(id), plain.insert(id).second);
    } else {
      ASSERT_EQ(ids.Remove(id), plain.erase(id) == 1);
    }
    ASSERT_EQ(ids.size(), plain.size());
    ASSERT_EQ(ids.First(), plain.empty() ? std::nullopt : std::optional(*plain.begin()));
  }
}

TEST(Blocks, EachFallsByItselfAndTheLastOneFreesIt) {
  Blocks blocks;
  const WorkInstant until{seconds(5)};
  blocks.AddRetry(1, 10);
  EXPECT_TRUE(blocks.AddElsewhere(1, until));
  EXPECT_THAT(blocks.Durable(10), IsEmpty());
  EXPECT_FALSE(blocks.Of(1).retry);
  EXPECT_THAT(blocks.TimePassed(until - Duration(1)), IsEmpty());
  EXPECT_THAT(blocks.TimePassed(until), ElementsAre(1));
  EXPECT_FALSE(blocks.Has(1));
}

TEST(Blocks, TheLatestReasonOfAKindCounts) {
  Blocks blocks;
  blocks.AddRetry(1, 10);
  blocks.AddRetry(1, 20);
  EXPECT_THAT(blocks.Durable(10), IsEmpty());
  EXPECT_THAT(blocks.Durable(20), ElementsAre(1));
  blocks.AddElsewhere(2, WorkInstant(seconds(5)));
  blocks.AddElsewhere(2, WorkInstant(seconds(3)));
  EXPECT_THAT(blocks.TimePassed(WorkInstant(seconds(4))), IsEmpty());
  EXPECT_THAT(blocks.TimePassed(WorkInstant(seconds(5))), ElementsAre(2));
}

TEST(Blocks, WhatIsDroppedFallsNoMore) {
  Blocks blocks;
  blocks.AddRetry(1, 10);
  blocks.AddElsewhere(1, WorkInstant(seconds(5)));
  blocks.AddWithheld(1);
  blocks.AddWithheld(2);
  blocks.Drop(1);
  EXPECT_THAT(blocks.Durable(10), IsEmpty());
  EXPECT_THAT(blocks.TimePassed(WorkInstant(seconds(9))), IsEmpty());
  EXPECT_THAT(blocks.EndWithheld(), ElementsAre(2));
}

// Whatever nodes say, memory is bounded.
TEST(Blocks, AreNotMoreThanHonestNodesCause) {
  Blocks blocks;
  for (BatchId id = 0; id < Blocks::kMostElsewhere; ++id) {
    ASSERT_TRUE(blocks.AddElsewhere(id, WorkInstant(seconds(5))));
  }
  EXPECT_FALSE(blocks.AddElsewhere(Blocks::kMostElsewhere, WorkInstant(seconds(5))));
}

Lease LeaseOf(uint32_t node, uint64_t fence, int until) {
  return {node, {1, node}, {1, fence}, WorkInstant(seconds(until))};
}

TEST(Leases, TheEarliestDeadlineIsFoundInWhateverOrderTheyCome) {
  Leases leases;
  auto& first = leases.Add(1, LeaseOf(0, 1, 10));
  auto& second = leases.Add(2, LeaseOf(0, 2, 12));
  auto& third = leases.Add(3, LeaseOf(1, 3, 11));
  EXPECT_EQ(leases.Earliest(), &first);
  leases.Renew(first, WorkInstant(seconds(20)));
  EXPECT_EQ(leases.Earliest(), &third);
  leases.Shorten(0, WorkInstant(seconds(9)));
  EXPECT_EQ(leases.Earliest(), &first);
  leases.Shorten(1, WorkInstant(seconds(30)));
  EXPECT_EQ(third.lease.deadline, WorkInstant(seconds(11))) << "never lengthened";
  leases.Renew(first, WorkInstant(seconds(21)));
  EXPECT_EQ(leases.Earliest(), &second);
  EXPECT_EQ(leases.Check(), "");
  leases.Remove(second);
  leases.Remove(third);
  leases.Remove(first);
  EXPECT_EQ(leases.Earliest(), nullptr);
  EXPECT_EQ(leases.Check(), "");
}

TEST(Leases, WhatMayHaveASecondIsGivenToOtherNodesInTheOrderOfItsStart) {
  Leases leases;
  for (const uint32_t node : {0U, 1U, 2U}) {
    Lease lease = LeaseOf(node, node + 1, 10);
    lease.started_at = WorkInstant(seconds(9 - node));
    leases.AllowSecond(leases.Add(node, lease), true);
  }
  EXPECT_EQ(leases.LongestElsewhere(7)->id, 2U);
  EXPECT_EQ(leases.LongestElsewhere(2)->id, 1U);
  leases.AllowSecond(*leases.Of(2)[0], false);
  leases.Remove(*leases.Of(1)[0]);
  EXPECT_EQ(leases.LongestElsewhere(7)->id, 0U);
  EXPECT_EQ(leases.LongestElsewhere(0), nullptr);
}

TEST(Leases, TheSecondOfTwoIsTheOnlyOneWhenTheFirstEnds) {
  Leases leases;
  auto& first = leases.Add(FirstPiece(1), LeaseOf(0, 1, 10));
  auto& second = leases.Add(FirstPiece(1), LeaseOf(1, 2, 10));
  EXPECT_EQ(leases.pieces(), 1U);
  leases.Remove(first);
  EXPECT_THAT(leases.Of(FirstPiece(1)), ElementsAre(&second, nullptr));
  EXPECT_EQ(leases.pieces(), 1U);
  leases.Remove(second);
  EXPECT_EQ(leases.pieces() + leases.batches() + leases.CountOf(1), 0U);
}

}  // namespace
}  // namespace parallelrun::job
