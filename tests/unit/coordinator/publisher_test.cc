#include "coordinator/publisher.h"

#include <gtest/gtest.h>

#include "tests/support/fault_files.h"

namespace parallelrun {
namespace {

constexpr char kOutput[] = "/out/rows.txt";

// A job of three mini-batches, planned and settled in the order 2, 0 (1 fails).
class PublisherTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ledger_ = Open();
    SettingsRecord settings;
    settings.generation = 1;
    ASSERT_TRUE(ledger_->Begin(settings, std::nullopt).ok());
    Append(settings);
    TabularChunk tabular;
    tabular.path = "/in/a.csv";
    for (uint32_t i = 0; i < 3; ++i) tabular.slices.push_back({i * 10ULL, 10, 1});
    PlanChunkRecord chunk;
    chunk.content = tabular;
    Append(chunk);
    Append(RowsRecord{2, {1, 1}, "first part of two\n"});
    ResultRecord two;
    two.id = 2;
    two.fence = {1, 1};
    two.row_count = 2;
    two.rows = "second part of two\n";
    Append(two);
    ResultRecord zero;
    zero.id = 0;
    zero.fence = {1, 2};
    zero.row_count = 1;
    zero.rows = "zero\n";
    Append(zero);
    FailedRecord one;
    one.id = 1;
    one.fence = {1, 3};
    one.end = AttemptEnd::kFinal;
    Append(one);
    ASSERT_TRUE(ledger_->Flush().ok());
  }

  std::unique_ptr<Ledger> Open() {
    LedgerOptions options;
    options.state_folder = "/state";
    options.output_folder = "/out";
    options.output_file = "rows.txt";
    options.nonce = ++nonce_;
    options.new_run_id = 7;
    Result<std::unique_ptr<Ledger>> ledger = Ledger::Claim(
        files_, options, [](const Record&, const Place&, const Place&) { return Status(); });
    EXPECT_TRUE(ledger.ok());
    return std::move(*ledger);
  }

  void Append(const Record& record) {
    const auto at = ledger_->Append(record);
    ASSERT_TRUE(state_.Apply(record, at.record, at.rows).ok());
  }

  std::string Contents() {
    const auto file = files_.OpenRead(kOutput);
    return file.ok() ? *(*file)->ReadAt(0, 1000) : "(none)";
  }

  FaultFiles files_;
  uint64_t nonce_ = 0;
  std::unique_ptr<Ledger> ledger_;
  JobState state_;
};

TEST_F(PublisherTest, RowsComeInMiniBatchOrder) {
  const auto published = PublishOutput(files_, *ledger_, state_, RowOrder::kMiniBatch, kOutput);
  ASSERT_TRUE(published.ok()) << published.error().message;
  EXPECT_EQ(Contents(), "zero\nfirst part of two\nsecond part of two\n");
  EXPECT_EQ(published->bytes, Contents().size());
  EXPECT_EQ(published->rows, 3u);
}

TEST_F(PublisherTest, OrInTheOrderOfCompletion) {
  ASSERT_TRUE(PublishOutput(files_, *ledger_, state_, RowOrder::kCompletion, kOutput).ok());
  EXPECT_EQ(Contents(), "first part of two\nsecond part of two\nzero\n");
}

TEST_F(PublisherTest, TheFolderHoldsTheOutputAndNothingElse) {
  ASSERT_TRUE(PublishOutput(files_, *ledger_, state_, RowOrder::kMiniBatch, kOutput).ok());
  EXPECT_EQ(*files_.List("/out"), std::vector<std::string>{"rows.txt"});
}

TEST_F(PublisherTest, ASupersededCoordinatorPublishesNothing) {
  const std::unique_ptr<Ledger> successor = Open();
  const auto published = PublishOutput(files_, *ledger_, state_, RowOrder::kMiniBatch, kOutput);
  ASSERT_FALSE(published.ok());
  EXPECT_EQ(published.error().code, Code::kStale);
  EXPECT_EQ(Contents(), "(none)");
}

TEST_F(PublisherTest, WhatWasPublishedSurvivesACrash) {
  ASSERT_TRUE(PublishOutput(files_, *ledger_, state_, RowOrder::kMiniBatch, kOutput).ok());
  files_.Crash(CrashMode::kLoseAll);
  EXPECT_EQ(Contents(), "zero\nfirst part of two\nsecond part of two\n");
}

}  // namespace
}  // namespace parallelrun
