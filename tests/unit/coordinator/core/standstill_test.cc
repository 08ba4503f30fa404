#include "coordinator/core/standstill.h"

#include <gtest/gtest.h>

#include "tests/unit/coordinator/core/journal_harness.h"

namespace parallelrun {
namespace {

class StandstillTest : public ::testing::Test {
 protected:
  static constexpr Instant kStart = JournalHarness::kStart;

  std::string Overdue(Duration after, const std::string& why = "") const {
    const auto late = still_.Overdue(h_.state, kStart + after, [&] { return why; });
    return late ? late->reason + ": " + late->message : "";
  }

  JournalHarness h_;
  Standstill still_{{.progress = seconds(300), .first_task = seconds(600)}, kStart};
};

TEST_F(StandstillTest, NothingMayStandForTooLong) {
  h_.Plan(1);
  EXPECT_EQ(Overdue(seconds(300)), "");
  EXPECT_EQ(Overdue(seconds(301), "no node is there"),
            "NoProgress: no mini-batch was finished for 5m00s: no node is there");
  EXPECT_NE(Overdue(seconds(301)).find(".stderr.txt"), std::string::npos);
  still_.Moved(kStart + seconds(100));
  EXPECT_EQ(Overdue(seconds(400)), "");
  EXPECT_NE(Overdue(seconds(401)), "");
}

TEST_F(StandstillTest, TimeThatNobodyCouldUseDoesNotCount) {
  h_.Plan(1);
  still_.Tick(kStart + seconds(200), false);
  still_.Tick(kStart + seconds(400), true);
  EXPECT_EQ(Overdue(seconds(500)), "");
  EXPECT_NE(Overdue(seconds(501)), "");
}

TEST_F(StandstillTest, WhatCameRightBeforeATickIsProgressOfNowAndNotOfLater) {
  h_.Plan(1);
  still_.Moved(kStart + seconds(9));
  still_.Tick(kStart + seconds(10), false);
  EXPECT_EQ(Overdue(seconds(310)), "");
  EXPECT_NE(Overdue(seconds(311)), "");
}

TEST_F(StandstillTest, AListingThatPlansNothingIsTooSlow) {
  EXPECT_EQ(Overdue(seconds(600)), "");
  EXPECT_EQ(Overdue(seconds(601)).substr(0, 58),
            "FirstTaskTimeout: no mini-batch was planned within 10m00s:");
}

TEST_F(StandstillTest, WhereAllThatIsPlannedIsDoneTheListingHasTheLongerTime) {
  const auto position = h_.journal->AddChunk(h_.Chunk(1));
  h_.availability->Plan(*position, 1);
  h_.Sync();
  h_.journal->Add(ResultRecord{0, h_.Lease(0).fence, 0, 0, 1, 1, 0, "", {}});
  EXPECT_EQ(Overdue(seconds(600)), "");
  EXPECT_EQ(Overdue(seconds(601)).substr(0, 40), "FirstTaskTimeout: all 1 mini-batches tha");
}

}  // namespace
}  // namespace parallelrun
