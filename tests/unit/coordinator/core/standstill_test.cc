#include "coordinator/core/standstill.h"

#include <gtest/gtest.h>

#include "tests/unit/coordinator/core/journal_harness.h"

namespace parallelrun::coordinator {
namespace {

class StandstillTest : public ::testing::Test {
 protected:
  static constexpr WorkInstant kStart = JournalHarness::kStart;

  std::string Overdue(Duration after, const std::string& why = "") const {
    const auto late = still_.Overdue(h_.state, kStart + after, [&] { return why; });
    return late ? late->reason + ": " + late->message : "";
  }

  JournalHarness h_;
  Standstill still_{{.progress = seconds(300), .first_task = seconds(600), .init = seconds(1800)},
                    kStart};
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

// A model that took six minutes could never be loaded.
TEST_F(StandstillTest, InitHasALimitOfItsOwnWhateverTheListingIsAt) {
  h_.Plan(1);
  EXPECT_FALSE(still_.Tick(kStart + seconds(1789), true, 2));
  EXPECT_EQ(Overdue(seconds(1789)), "");
  EXPECT_TRUE(still_.Tick(kStart + seconds(1790), true, 2)) << "they are asked where it is";
  EXPECT_TRUE(still_.Asks(0, {1, 1}));
  still_.Where(0, 0, "init score.py:3");
  still_.Moved(kStart + seconds(1795));  // another mini-batch was planned
  EXPECT_FALSE(still_.Tick(kStart + seconds(1800), true, 2));
  EXPECT_EQ(Overdue(seconds(1800)), "");
  still_.Tick(kStart + seconds(1801), true, 2);
  EXPECT_EQ(Overdue(seconds(1801)),
            "InitTimeout: no process has come through init() within 30m00s, on 2 nodes: node 0, "
            "process000: init score.py:3; fix that, or raise spec.initTimeoutSeconds. The whole "
            "stacks are at the end of user/stderr/<node>/<process>.stderr.txt");
}

TEST_F(StandstillTest, TheTimeOfInitIsNotThatOfMiniBatches) {
  h_.Plan(1);
  still_.Tick(kStart + seconds(1000), true, 1);
  still_.Ready(kStart + seconds(1000));
  still_.Ready(kStart + seconds(1200));          // told again
  still_.Tick(kStart + seconds(1200), true, 1);  // another node is in init()
  EXPECT_EQ(Overdue(seconds(1300)), "");
  EXPECT_EQ(Overdue(seconds(1301)).substr(0, 11), "NoProgress:");
}

TEST_F(StandstillTest, TimeOfInitThatNobodyCouldUseDoesNotCount) {
  h_.Plan(1);
  still_.Tick(kStart + seconds(1000), false, 1);
  still_.Tick(kStart + seconds(2800), true, 1);
  EXPECT_EQ(Overdue(seconds(2800)), "");
  still_.Tick(kStart + seconds(2801), true, 1);
  EXPECT_EQ(Overdue(seconds(2801)).substr(0, 12), "InitTimeout:");
}

// How often it may fail is counted, and takes the time that it takes.
TEST_F(StandstillTest, InitThatFailsAndIsTriedAnewDoesNotHang) {
  h_.Plan(1);
  still_.Tick(kStart + seconds(1700), true, 1);
  still_.InitFailed();
  still_.Tick(kStart + seconds(3500), true, 1);
  EXPECT_EQ(Overdue(seconds(3500)), "");
  still_.Tick(kStart + seconds(3501), true, 1);
  EXPECT_EQ(Overdue(seconds(3501)).substr(0, 12), "InitTimeout:");
}

// Its host froze while it was in init(): that is no matter of the script.
TEST_F(StandstillTest, NodesThatAreNotInInitAnyMoreHaveTheTimeOfMiniBatches) {
  h_.Plan(1);
  still_.Tick(kStart + seconds(1000), true, 1);
  still_.Tick(kStart + seconds(1300), true, 0);
  EXPECT_EQ(Overdue(seconds(1300), "node 0 has said nothing"), "");
  EXPECT_EQ(Overdue(seconds(1301), "node 0 has said nothing"),
            "NoProgress: no mini-batch was finished for 5m00s: node 0 has said nothing");
}

// A node that is evicted in init() again and again is there for seconds only, and its job had no
// end.
TEST_F(StandstillTest, ANodeThatEndsAgainAndAgainTriesInVain) {
  for (uint64_t pod = 1; pod <= 5; ++pod) {
    still_.Ended(0, pod, "Evicted");
    still_.Ended(0, pod, "Evicted");        // told again
    still_.Ended(1, 100 - pod, "Deleted");  // late news of an older pod
  }
  for (uint32_t node = 2; node < 100; ++node) still_.Ended(node, 200 + node, "Deleted");
  EXPECT_FALSE(still_.InVain()) << "a whole job that is taken away once is no loop";
  EXPECT_EQ(still_.InVainText(), "");
  still_.Ended(0, 6, "Evicted");
  EXPECT_TRUE(still_.InVain());
  EXPECT_EQ(still_.InVainText(),
            "the pod of node 0 ended 6 times in a row, the last time with Evicted: the events of "
            "the job say why");
  still_.Moved(kStart + seconds(1));
  EXPECT_FALSE(still_.InVain()) << "there is a result";
  still_.Ended(0, 7, "Evicted");
  EXPECT_FALSE(still_.InVain());
}

TEST_F(StandstillTest, NodesAreAskedOnceEachBeforeTheEnd) {
  h_.Plan(1);
  const job::Incarnation first{1, 1};
  EXPECT_FALSE(still_.Tick(kStart + seconds(289), true));
  EXPECT_FALSE(still_.Asks(0, first));
  EXPECT_TRUE(still_.Tick(kStart + seconds(290), true));
  EXPECT_FALSE(still_.Tick(kStart + seconds(291), true)) << "they are woken once";
  EXPECT_TRUE(still_.Asks(0, first));
  still_.Asked(0, first);
  EXPECT_FALSE(still_.Asks(0, first));
  EXPECT_TRUE(still_.Asks(1, first));
  EXPECT_TRUE(still_.Asks(0, {1, 2})) << "another agent";
  still_.NotHeard(0);
  EXPECT_TRUE(still_.Asks(0, first));
  still_.Moved(kStart + seconds(292));
  EXPECT_FALSE(still_.Asks(0, first));
  EXPECT_FALSE(still_.Tick(kStart + seconds(300), true));
}

// The hint at Python led nobody to the store that had gone away.
TEST_F(StandstillTest, WhatAWholeNodeWaitsForComesBeforeItsProcesses) {
  h_.Plan(1);
  still_.Tick(kStart + seconds(290), true);
  still_.Where(1, 0, "run (score.py:3)");
  still_.Where(1, 1, "run (score.py:3)");
  still_.Where(0, job::ProcessEvent::kWholeNode, "the store s3://box has given nothing");
  EXPECT_EQ(
      Overdue(seconds(301)),
      "NoProgress: no mini-batch was finished for 5m00s: node 0: the store s3://box has given "
      "nothing; node 1, process000 and 1 more: run (score.py:3). See to it, and continue the "
      "run");
}

TEST_F(StandstillTest, ItSaysWhereTheProcessesAreThoseFirstWhereMostAre) {
  h_.Plan(1);
  still_.Where(0, 7, "too early");
  still_.Tick(kStart + seconds(290), true);
  still_.Where(0, 0, "init score.py:3");
  still_.Where(0, 1, "run score.py:30");
  still_.Where(1, 1000, "run score.py:30");
  still_.Where(1, 1000, "run score.py:30");  // again
  still_.Where(1, 1001, "load score.py:7");
  still_.Where(2, 0, "last score.py:9");
  EXPECT_EQ(
      Overdue(seconds(301)),
      "NoProgress: no mini-batch was finished for 5m00s: node 0, process001 and 1 more: run "
      "score.py:30; node 0, process000: init score.py:3; node 2, process000: last score.py:9; 1 "
      "more elsewhere; fix that, or raise spec.progressUpdateTimeoutSeconds. The whole stacks "
      "are at the end of user/stderr/<node>/<process>.stderr.txt");
  EXPECT_NE(Overdue(seconds(301), "node 3 is silent").find("node 3 is silent"), std::string::npos);
}

TEST_F(StandstillTest, OfALongPlaceItsInnermostCallsStay) {
  h_.Plan(1);
  still_.Tick(kStart + seconds(290), true);
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += "call deep.py:" + std::to_string(i) + ", ";
  still_.Where(0, 0, deep + "last deep.py:9 (deep.py:9)");
  const std::string said = Overdue(seconds(301));
  EXPECT_LT(said.size(), 900U);
  EXPECT_NE(said.find("process000: ..., call deep.py:"), std::string::npos) << said;
  EXPECT_NE(said.find("last deep.py:9 (deep.py:9);"), std::string::npos) << said;
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
  h_.journal->Add(
      job::ResultRecord{{.run_ns = 1, .items_succeeded = 1}, 0, h_.Lease(0).fence, 0, 0, ""});
  EXPECT_EQ(Overdue(seconds(600)), "");
  EXPECT_EQ(Overdue(seconds(601)).substr(0, 40), "FirstTaskTimeout: all 1 mini-batches tha");
}

}  // namespace
}  // namespace parallelrun::coordinator
