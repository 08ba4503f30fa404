#include "coordinator/publisher.h"

#include <gtest/gtest.h>

#include "coordinator/folder_sink.h"
#include "coordinator/output_file.h"
#include "tests/support/fault_files.h"
#include "tests/support/memory_sink.h"

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

  Result<Publication> Publish(RowOrder order = RowOrder::kMiniBatch) {
    const std::unique_ptr<Sink> sink = MakeFolderSink(files_, kOutput, held_);
    return PublishOutput(*sink, *ledger_, state_, {.order = order});
  }
  // The same into memory.
  Result<Publication> PublishTo(MemorySink& sink, OutputFormat format = OutputFormat::kText) {
    sink.MakeToken(ledger_->token_path());
    return PublishOutput(sink, *ledger_, state_, {.format = format});
  }

  std::string Contents() {
    const auto file = files_.OpenRead(kOutput);
    return file.ok() ? *(*file)->ReadAt(0, 1000) : "(none)";
  }

  FaultFiles files_;
  uint64_t nonce_ = 0;
  std::unique_ptr<Ledger> ledger_;
  JobState state_;
  HeldOutput held_;  // none
};

TEST_F(PublisherTest, RowsComeInMiniBatchOrder) {
  const auto published = Publish();
  ASSERT_TRUE(published.ok()) << published.error().message;
  EXPECT_EQ(Contents(), "zero\nfirst part of two\nsecond part of two\n");
  EXPECT_EQ(published->published.bytes, Contents().size());
  EXPECT_EQ(published->published.rows, 3u);
}

TEST_F(PublisherTest, OrInTheOrderOfCompletion) {
  ASSERT_TRUE(Publish(RowOrder::kCompletion).ok());
  EXPECT_EQ(Contents(), "first part of two\nsecond part of two\nzero\n");
}

TEST_F(PublisherTest, TheFolderHoldsTheOutputAndNothingElse) {
  ASSERT_TRUE(Publish().ok());
  EXPECT_EQ(*files_.List("/out"), std::vector<std::string>{"rows.txt"});
}

TEST_F(PublisherTest, ASupersededCoordinatorPublishesNothing) {
  const std::unique_ptr<Ledger> successor = Open();
  const auto published = Publish();
  ASSERT_FALSE(published.ok());
  EXPECT_EQ(published.error().code, Code::kStale);
  EXPECT_EQ(Contents(), "(none)");
}

TEST_F(PublisherTest, AFileThatAppearedIsNotReplaced) {
  for (const bool tells : {true, false}) {
    files_.SetRenameNewWorks(tells);
    files_.Put(kOutput, "a user's");
    const auto published = Publish();
    ASSERT_FALSE(published.ok());
    EXPECT_EQ(published.error().code, Code::kExists);
    EXPECT_NE(published.error().message.find("move it away"), std::string::npos);
    EXPECT_EQ(Contents(), "a user's");
    files_.Drop(kOutput);
    EXPECT_TRUE(Publish().ok()) << "once it is away";
    files_.Drop(kOutput);
    ledger_ = Open();
  }
}

TEST_F(PublisherTest, UnlessAPersonHasSaidSo) {
  SettingsRecord settings;
  settings.generation = 1;
  settings.may_replace = true;
  Append(settings);
  files_.Put(kOutput, "a user's");
  ASSERT_TRUE(Publish().ok());
  EXPECT_EQ(Contents(), "zero\nfirst part of two\nsecond part of two\n");
}

// A crash between the rename and its record.
TEST_F(PublisherTest, WhatThisRunPutThereBeforeItsRecordIsTaken) {
  ASSERT_TRUE(Publish().ok());
  ledger_ = Open();
  const auto published = Publish();
  ASSERT_TRUE(published.ok()) << published.error().message;
  EXPECT_EQ(published->set_aside, "");
  EXPECT_EQ(*files_.List("/out"), std::vector<std::string>{"rows.txt"});
}

TEST_F(PublisherTest, OfAnOutputThatWasPublishedTheSuccessorReplacesOnlyWhatItPublished) {
  const auto record = [this](const Published& published) {
    PublishedRecord kept;
    kept.path = published.path;
    kept.bytes = published.bytes;
    kept.sha256 = published.sha256;
    Append(kept);
  };
  const auto first = Publish(RowOrder::kCompletion);
  record(first->published);
  ledger_ = Open();
  ASSERT_TRUE(ledger_->Begin(std::nullopt, std::nullopt).ok());
  const auto second = Publish();
  ASSERT_TRUE(second.ok()) << second.error().message;
  EXPECT_EQ(second->set_aside, "");
  record(second->published);

  files_.Put(kOutput, "altered");
  ledger_ = Open();
  ASSERT_TRUE(ledger_->Begin(std::nullopt, std::nullopt).ok());
  const auto third = Publish();
  ASSERT_TRUE(third.ok()) << third.error().message;
  EXPECT_EQ(third->set_aside, "/out/rows.txt.set-aside-1");
  EXPECT_EQ(files_.Contents(third->set_aside), "altered");
  EXPECT_EQ(Contents(), "zero\nfirst part of two\nsecond part of two\n");
}

TEST_F(PublisherTest, NothingIsPublishedWhereAnotherRunHasTheOutput) {
  held_ = {"/out/.rows.txt.parallelrun-claim", "mine"};
  files_.Put(held_.path, "another's");
  EXPECT_EQ(Publish().error().code, Code::kExists);
  EXPECT_EQ(Contents(), "(none)");
  files_.Drop(held_.path);  // by a person
  EXPECT_TRUE(Publish().ok());
}

TEST_F(PublisherTest, DamageIsToldInWords) {
  const Published published = Publish()->published;
  EXPECT_EQ(*DamageOf(files_, kOutput, published), "");
  files_.Put(kOutput, "");
  EXPECT_EQ(*DamageOf(files_, kOutput, published), "has 0 bytes, 42 were published");
  files_.Put(kOutput, std::string(42, 'x'));
  EXPECT_EQ(*DamageOf(files_, kOutput, published), "has other bytes than were published");
  files_.Drop(kOutput);
  EXPECT_EQ(*DamageOf(files_, kOutput, published), "is not there");
}

TEST_F(PublisherTest, AHeaderIsThereOnceWhereTheFormatHasOne) {
  Append(HeaderRecord{"a b\n"});
  MemorySink text;
  ASSERT_TRUE(PublishTo(text).ok());
  EXPECT_EQ(*text.object(), "a b\nzero\nfirst part of two\nsecond part of two\n");
  MemorySink lines;
  ASSERT_TRUE(PublishTo(lines, OutputFormat::kJsonl).ok());
  EXPECT_EQ(*lines.object(), "zero\nfirst part of two\nsecond part of two\n");
}

TEST_F(PublisherTest, ASinkWithoutFilesTellsTheSameThreeEnds) {
  MemorySink sink;
  const auto published = PublishTo(sink);
  ASSERT_TRUE(published.ok()) << published.error().message;
  EXPECT_EQ(*sink.object(), "zero\nfirst part of two\nsecond part of two\n");
  EXPECT_EQ(published->published.path, sink.Location());

  sink.Put("a user's");
  EXPECT_EQ(PublishTo(sink).error().code, Code::kExists);
  EXPECT_EQ(*sink.object(), "a user's");
  sink.Drop();

  sink.EndToken(ledger_->token_path());
  const auto stale = PublishOutput(sink, *ledger_, state_, {});
  EXPECT_EQ(stale.error().code, Code::kStale);
  EXPECT_EQ(sink.object(), nullptr);
}

TEST_F(PublisherTest, ATokenThatEndsWhileRowsAreAppendedPublishesNothing) {
  MemorySink sink;
  sink.MakeToken("mine");
  const auto writer = sink.Begin("mine");
  ASSERT_TRUE((*writer)->Append("rows").ok());
  EXPECT_EQ(sink.object(), nullptr) << "out of sight";
  sink.EndToken("mine");
  EXPECT_EQ((*writer)->End({}, {})->end, Committed::kStale);

  const std::unique_ptr<Sink> folder = MakeFolderSink(files_, kOutput, {});
  const auto file = folder->Begin(ledger_->token_path());
  ASSERT_TRUE((*file)->Append("rows").ok());
  EXPECT_EQ(Contents(), "(none)") << "out of sight";
  const std::unique_ptr<Ledger> successor = Open();
  EXPECT_EQ((*file)->End({kOutput, 4, 1, {}}, {})->end, Committed::kStale);
  EXPECT_EQ(Contents(), "(none)");
}

TEST_F(PublisherTest, WhoDoesNotHearTheAnswerPublishesTheSameAgain) {
  MemorySink sink;
  sink.LoseNextAnswer();
  EXPECT_EQ(PublishTo(sink).error().code, Code::kUnavailable);
  EXPECT_TRUE(PublishTo(sink).ok());
}

TEST_F(PublisherTest, WithoutRoomNothingIsBegun) {
  MemorySink sink;
  sink.SetRoom(1000);
  EXPECT_EQ(PublishTo(sink).error().code, Code::kNoSpace);
  sink.SetRoom(uint64_t{1} << 30);
  EXPECT_TRUE(PublishTo(sink).ok());
}

TEST_F(PublisherTest, WhatWasPublishedSurvivesACrash) {
  ASSERT_TRUE(Publish().ok());
  files_.Crash(CrashMode::kLoseAll);
  EXPECT_EQ(Contents(), "zero\nfirst part of two\nsecond part of two\n");
}

}  // namespace
}  // namespace parallelrun
