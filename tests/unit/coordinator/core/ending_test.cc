#include "coordinator/core/ending.h"

#include <gtest/gtest.h>

#include "tests/unit/coordinator/core/journal_harness.h"

namespace parallelrun::coordinator {
namespace {

class EndingTest : public ::testing::Test {
 protected:
  using Phase = Ending::Phase;
  static constexpr Instant kNow{seconds(1000)};
  static constexpr WorkInstant kWorked = JournalHarness::kStart;
  void Owe() { h_.journal->Add(job::ShutdownRecord{0, 0, job::ProcessEnd::kOpen, "", ""}); }

  const job::Verdict good_{job::Outcome::kSucceeded, "Complete", ""};
  const job::Verdict bad_{job::Outcome::kFailed, "Canceled", ""};
  JournalHarness h_;
  Ending ending_{{}, seconds(300), *h_.journal};
};

TEST_F(EndingTest, AVerdictIsToldOnceItIsDurableAndALookHasFollowed) {
  ending_.Conclude(good_);
  EXPECT_EQ(ending_.phase(), Phase::kDeciding);
  EXPECT_FALSE(ending_.Durable(kNow).look) << "it is not";
  EXPECT_FALSE(ending_.Looked(kNow + seconds(1), true).wake);
  h_.Sync();
  EXPECT_TRUE(ending_.Durable(kNow + seconds(1)).look);
  EXPECT_TRUE(ending_.Looked(kNow, true).look) << "that one began before";
  EXPECT_TRUE(ending_.Looked(kNow + seconds(1), false).look) << "that one saw nothing";
  EXPECT_EQ(ending_.phase(), Phase::kDeciding);
  EXPECT_TRUE(ending_.Looked(kNow + seconds(1), true).wake);
  EXPECT_EQ(ending_.phase(), Phase::kFinalizing);
}

TEST_F(EndingTest, TheFirstVerdictStands) {
  ending_.Conclude(bad_);
  ending_.Conclude(good_);
  EXPECT_EQ(h_.state.verdict()->reason, "Canceled");
  ending_.Drain();
  EXPECT_EQ(ending_.phase(), Phase::kDeciding);
}

TEST_F(EndingTest, AfterAFailureThereIsNothingToPublish) {
  ending_.Conclude(bad_);
  h_.Sync();
  ending_.Durable(kNow);
  ending_.Looked(kNow, true);
  EXPECT_EQ(ending_.phase(), Phase::kEnded);
}

TEST_F(EndingTest, WhatIsPublishedIsDurableBeforeTheEnd) {
  ending_.Conclude(good_);
  h_.Sync();
  ending_.Durable(kNow);
  ending_.Looked(kNow, true);
  ending_.Publish({});
  ending_.Durable(kNow);
  EXPECT_EQ(ending_.phase(), Phase::kFinalizing);
  h_.Sync();
  ending_.Durable(kNow);
  EXPECT_EQ(ending_.phase(), Phase::kEnded);
}

TEST_F(EndingTest, ALaterEpochGoesOnFromTheVerdict) {
  h_.journal->Add(job::VerdictRecord{job::Outcome::kSucceeded, 0, "Complete", ""});
  EXPECT_EQ(Ending({}, seconds(300), *h_.journal).phase(), Phase::kFinalizing);
  h_.journal->Add(job::PublishedRecord{});
  EXPECT_EQ(Ending({}, seconds(300), *h_.journal).phase(), Phase::kEnded);
}

TEST_F(EndingTest, ASuccessWaitsForProcessesThatRunShutdownAndAFailureDoesNot) {
  Owe();
  EXPECT_FALSE(ending_.Finish(good_, kWorked).wake) << "the results are not durable";
  EXPECT_EQ(ending_.phase(), Phase::kClosing);
  EXPECT_EQ(ending_.DirectiveFor(true), job::Directive::kGoOn);
  h_.Sync();
  EXPECT_TRUE(ending_.Durable(kNow).wake);
  EXPECT_EQ(ending_.DirectiveFor(true), job::Directive::kClose);
  EXPECT_FALSE(ending_.Finish(good_, kWorked).wake) << "it closes already";
  EXPECT_FALSE(h_.state.verdict());
  ending_.Finish(bad_, kWorked);
  EXPECT_EQ(h_.state.verdict()->reason, "Canceled");
}

TEST_F(EndingTest, AShutdownIsRecordedOnceHoweverOftenItIsTold) {
  const job::ProcessEvent closed{0, job::ProcessEvent::Kind::kClosed, "", ""};
  Owe();
  ending_.TakeShutdown(0, closed);
  const uint64_t appended = h_.journal->appended();
  ending_.TakeShutdown(0, closed);
  EXPECT_EQ(h_.journal->appended(), appended);
  EXPECT_FALSE(h_.state.shutdowns().AnyOpen());
}

TEST_F(EndingTest, ProcessesOfWhichNothingWillBeHeardAreLost) {
  Owe();
  ending_.LoseShutdowns(h_.state.shutdowns().Open(), "its node has left");
  EXPECT_FALSE(h_.state.shutdowns().AnyOpen());
}

TEST_F(EndingTest, NodesAreToldWhatIsNearest) {
  EXPECT_EQ(ending_.DirectiveFor(true), job::Directive::kGoOn);
  EXPECT_EQ(ending_.DirectiveFor(false), job::Directive::kDrain);
  ending_.Drain();
  EXPECT_EQ(ending_.phase(), Phase::kDraining);
  EXPECT_EQ(ending_.DirectiveFor(true), job::Directive::kDrain);
  ending_.Conclude(bad_);
  EXPECT_EQ(ending_.DirectiveFor(true), job::Directive::kFinish);
}

TEST_F(EndingTest, OtherThresholdsAreRecordedOnceAndNotAfterTheVerdict) {
  job::Thresholds few = ending_.rules().thresholds;
  few.error_threshold = 3;
  EXPECT_TRUE(ending_.SetThresholds(few, 5));
  EXPECT_EQ(h_.state.settings()->wall_us, 5);
  EXPECT_EQ(ending_.rules().thresholds, few);
  EXPECT_FALSE(ending_.SetThresholds(few, 6));
  ending_.Conclude(bad_);
  few.error_threshold = 4;
  EXPECT_FALSE(ending_.SetThresholds(few, 7));
}

}  // namespace
}  // namespace parallelrun::coordinator
