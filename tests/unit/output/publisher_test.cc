#include "output/publisher.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/bytes.h"
#include "base/mac.h"
#include "output/folder_sink.h"
#include "output/output_file.h"
#include "parquet/page.h"
#include "plan/parquet_footer.h"
#include "tests/support/fault_files.h"
#include "tests/support/memory_sink.h"
#include "tests/unit/output/ledger_of_three.h"

namespace parallelrun::output {
namespace {

using nlohmann::json;

constexpr char kOutput[] = "/out/rows.txt";
constexpr char kIndex[] = "/out/rows.txt.index.jsonl";

// Settled in the order 2, 0 (1 fails), each of these in two parts.
class JobOfThree : protected LedgerOfThree {
 public:
  using Parts = std::pair<std::string, std::string>;

  JobOfThree(const Parts& two_rows, const Parts& zero_rows) : LedgerOfThree("rows.txt", "") {
    AppendResult(2, {1, 1}, two_rows);
    AppendResult(0, {1, 2}, zero_rows);
    Fail(1, {1, 3});
    EXPECT_TRUE(ledger_->Flush().ok());
  }

  FaultFiles& files() { return files_; }
  using LedgerOfThree::Reopen;
  Result<Publication> PublishToFolder() {
    const std::unique_ptr<Sink> sink = MakeFolderSink(files_, kOutput, ledger_->token_path(), {});
    return PublishOutput(*sink, *ledger_, state_, {});
  }
  // Into memory.
  Result<Publication> PublishTo(MemorySink& sink, const PublishOptions& options = {}) {
    return PublishOutput(sink, *ledger_, state_, options);
  }

 private:
  void AppendResult(job::BatchId id, const job::Fence& fence, const Parts& parts) {
    if (!parts.first.empty()) Append(job::RowsRecord{id, fence, parts.first});
    Succeed(id, fence, id == 2 ? 2 : 1, parts.second);
  }
};

class PublisherTest : public ::testing::Test, protected JobOfThree {
 protected:
  PublisherTest() : JobOfThree({"first part of two\n", "second part of two\n"}, {"", "zero\n"}) {}

  Result<Publication> Publish(RowOrder order = RowOrder::kMiniBatch) {
    const std::unique_ptr<Sink> sink =
        MakeFolderSink(files_, kOutput, ledger_->token_path(), held_);
    return PublishOutput(*sink, *ledger_, state_, {.order = order});
  }

  std::string Contents() {
    const auto file = files_.OpenRead(kOutput);
    return file.ok() ? *(*file)->ReadAt(0, 1000) : "(none)";
  }

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
  EXPECT_EQ(*files_.List("/out"), (std::vector<std::string>{"rows.txt", "rows.txt.index.jsonl"}));
}

TEST_F(PublisherTest, ASupersededCoordinatorPublishesNothing) {
  const std::unique_ptr<ledger::Ledger> successor = Open();
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
  job::SettingsRecord settings;
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
  EXPECT_EQ(*files_.List("/out"), (std::vector<std::string>{"rows.txt", "rows.txt.index.jsonl"}));
}

TEST_F(PublisherTest, OfAnOutputThatWasPublishedTheSuccessorReplacesOnlyWhatItPublished) {
  const auto record = [this](const job::Published& published) {
    job::PublishedRecord kept;
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
  const job::Published published = Publish()->published;
  EXPECT_EQ(*DamageOf(files_, kOutput, published), "");
  files_.Put(kOutput, "");
  EXPECT_EQ(*DamageOf(files_, kOutput, published), "has 0 bytes, 42 were published");
  files_.Put(kOutput, std::string(42, 'x'));
  EXPECT_EQ(*DamageOf(files_, kOutput, published), "has other bytes than were published");
  files_.Drop(kOutput);
  EXPECT_EQ(*DamageOf(files_, kOutput, published), "is not there");
}

TEST_F(PublisherTest, AHeaderIsThereOnceWhereTheFormatHasOne) {
  Append(job::HeaderRecord{"a b\n"});
  MemorySink text;
  ASSERT_TRUE(PublishTo(text).ok());
  EXPECT_EQ(*text.object(), "a b\nzero\nfirst part of two\nsecond part of two\n");
  MemorySink lines;
  ASSERT_TRUE(PublishTo(lines, {.format = api::OutputFormat::kJsonl}).ok());
  EXPECT_EQ(*lines.object(), "zero\nfirst part of two\nsecond part of two\n");
}

TEST_F(PublisherTest, LinesOfTextAreCounted) {
  Append(job::HeaderRecord{"a b\n"});
  for (const auto format : {api::OutputFormat::kText, api::OutputFormat::kJsonl}) {
    MemorySink sink;
    const auto published = PublishTo(sink, {.format = format});
    ASSERT_TRUE(published.ok());
    EXPECT_EQ(published->lines, format == api::OutputFormat::kText ? 3U : 0U);
  }
}

std::vector<json> Lines(const std::string& index) {
  std::vector<json> lines;
  std::istringstream text(index);
  for (std::string line; std::getline(text, line);) lines.push_back(json::parse(line));
  return lines;
}

TEST_F(PublisherTest, TheIndexSaysWhereTheRowsOfEachMiniBatchAre) {
  Append(job::HeaderRecord{"a b\n"});
  for (const RowOrder order : {RowOrder::kMiniBatch, RowOrder::kCompletion}) {
    MemorySink sink;
    const auto published = PublishTo(sink, {.order = order});
    ASSERT_TRUE(published.ok());
    const std::vector<json> lines = Lines(sink.index());
    ASSERT_EQ(lines.size(), 4U);
    EXPECT_EQ(lines.front(), (json{{"parallelrunIndex", 1}, {"output", "rows.txt"}}));
    const json& two = lines[order == RowOrder::kMiniBatch ? 2 : 1];
    EXPECT_EQ(two["miniBatch"], 2);
    EXPECT_EQ(two["rows"], 2);
    EXPECT_EQ(two["firstRow"], order == RowOrder::kMiniBatch ? 1 : 0);
    EXPECT_EQ(two["firstItem"], 2);
    EXPECT_EQ(two["items"], 1);
    EXPECT_EQ(two["paths"], json({"/in/a.csv"}));
    uint64_t at = 4;  // behind the header
    for (size_t i = 1; i < 3; ++i) {
      const json& line = lines[i];
      EXPECT_EQ(line["offset"], at);
      const std::string rows = sink.object()->substr(at, line["bytes"]);
      EXPECT_EQ(rows,
                line["miniBatch"] == 2 ? "first part of two\nsecond part of two\n" : "zero\n");
      EXPECT_EQ(line["sha256"], Sha256Hex(rows));
      at += rows.size();
    }
    EXPECT_EQ(lines.back(), (json{{"miniBatches", 2},
                                  {"bytes", sink.object()->size()},
                                  {"rows", 3},
                                  {"sha256", Sha256Hex(*sink.object())}}));
  }
}

TEST_F(PublisherTest, AFileInTheIndexsPlaceIsSetAsideAndAnIndexIsReplaced) {
  files_.Put(kIndex, "a user's");
  ASSERT_TRUE(Publish().ok());
  EXPECT_EQ(files_.Contents("/out/rows.txt.index.jsonl.set-aside-1"), "a user's");
  const std::string index = files_.Contents(kIndex);
  files_.Put(kIndex, "{\"parallelrunIndex\":1,\"output\":\"rows.txt\"}\nof before\n");
  ledger_ = Open();
  ASSERT_TRUE(Publish().ok());
  EXPECT_EQ(files_.Contents(kIndex), index);
  EXPECT_EQ(files_.List("/out")->size(), 3U);
}

TEST_F(PublisherTest, WhereTheOutputMayNotBeReplacedItsIndexStays) {
  files_.Put(kOutput, "a user's");
  files_.Put(kIndex, "{\"parallelrunIndex\":1,\"output\":\"rows.txt\"}\nof that\n");
  EXPECT_EQ(Publish().error().code, Code::kExists);
  EXPECT_NE(files_.Contents(kIndex).find("of that"), std::string::npos);
}

// Every operation fails once, before or after it happens, and then the machine crashes: the next
// epoch publishes the same.
TEST(PublisherFaultsTest, AnOutputIsNowhereWithoutItsIndex) {
  const Error injected{Code::kInternal, "injected"};
  for (const FaultMoment moment : {FaultMoment::kBefore, FaultMoment::kAfter}) {
    for (const CrashMode mode : {CrashMode::kLoseAll, CrashMode::kKeepAll, CrashMode::kLoseSome}) {
      for (uint64_t n = 1;; ++n) {
        JobOfThree job({"", "two\n"}, {"", "zero\n"});
        FaultFiles& files = job.files();
        const uint64_t before = files.operations();
        files.FailOperation(n, injected, moment);
        const bool published = job.PublishToFolder().ok();
        const bool untouched = files.operations() - before < n;
        files.ClearFaults();
        if (!untouched) files.Crash(mode);
        const bool there = files.Has(kOutput);
        EXPECT_TRUE(there || !published) << n;
        if (there) {
          EXPECT_EQ(files.Contents(kOutput), "zero\ntwo\n");
          ASSERT_TRUE(files.Has(kIndex)) << n;
          EXPECT_NE(files.Contents(kIndex).find(Sha256Hex("zero\ntwo\n")), std::string::npos);
        }
        if (untouched) {
          EXPECT_GT(n, 10U);
          break;
        }
        job.Reopen();
        ASSERT_TRUE(job.PublishToFolder().ok()) << n;
        EXPECT_EQ(*files.List("/out"),
                  (std::vector<std::string>{"rows.txt", "rows.txt.index.jsonl"}));
      }
    }
  }
}

// Mini-batch 2 ended first, in two parts.
TEST(PublisherCsvTest, TheColumnsAreThoseOfTheFirstMiniBatchWhateverEndedFirst) {
  JobOfThree job({"[\"b\", \"a\"]\n4,", "3\n"}, {"[\"a\",", "\"b\"]\n1,2\n"});
  for (const RowOrder order : {RowOrder::kMiniBatch, RowOrder::kCompletion}) {
    MemorySink sink;
    ASSERT_TRUE(job.PublishTo(sink, {.order = order, .format = api::OutputFormat::kCsv}).ok());
    EXPECT_EQ(*sink.object(),
              order == RowOrder::kMiniBatch ? "a,b\n1,2\n3,4\n" : "a,b\n3,4\n1,2\n");
  }
  MemorySink sink;
  const PublishOptions said{.format = api::OutputFormat::kCsv, .columns = {"c", "b", "a"}};
  ASSERT_TRUE(job.PublishTo(sink, said).ok());
  EXPECT_EQ(*sink.object(), "c,b,a\n,2,1\n,4,3\n");
}

TEST(PublisherCsvTest, NothingIsPublishedOfAMiniBatchWithAColumnThatTheOutputLacks) {
  JobOfThree job({"[\"b\", \"x\"]\n4,", "3\n"}, {"[\"a\",", "\"b\"]\n1,2\n"});
  MemorySink sink;
  const auto published = job.PublishTo(sink, {.format = api::OutputFormat::kCsv});
  ASSERT_FALSE(published.ok());
  EXPECT_EQ(published.error().code, Code::kInvalid);
  EXPECT_EQ(published.error().message.find("mini-batch 2 has the column x"), 0U);
  EXPECT_EQ(sink.object(), nullptr);
  const PublishOptions said{.format = api::OutputFormat::kCsv, .columns = {"a", "b", "x"}};
  EXPECT_TRUE(job.PublishTo(sink, said).ok()) << "once the job says so";
}

// A row group of so many rows: `a` has a page, `b` has nothing.
std::string RowGroupOf(uint32_t rows, const std::string& type) {
  const std::string page = parquet::MissingValues(rows, false);
  const auto size = static_cast<uint32_t>(page.size());
  const std::string pages = parquet::PageHeader({rows, size, size}) + page;
  return R"({"rows":)" + std::to_string(rows) +
         R"(,"codec":"none","columns":[{"name":"b","type":)" + R"("null"},{"name":"a","type":")" +
         type + R"(","bytes":)" + std::to_string(pages.size()) + "}]}\n" + pages;
}

std::vector<uint64_t> RowGroupsOf(const std::string& file) {
  const uint32_t length = Decoder(std::string_view(file).substr(file.size() - 8)).U32();
  const auto groups = plan::ParseParquetFooter(file.substr(file.size() - 8 - length, length));
  EXPECT_TRUE(groups.ok());
  std::vector<uint64_t> rows;
  for (const plan::ParquetRowGroup& group : *groups) rows.push_back(group.rows);
  return rows;
}

// What the index says of the place of each mini-batch's rows.
std::string PlacesIn(const std::string& index) {
  std::string places;
  for (const json& line : Lines(index)) {
    if (!line.contains("miniBatch")) continue;
    EXPECT_FALSE(line.contains("offset") || line.contains("bytes")) << line;
    places += line["miniBatch"].dump() + ": " +
              (line.contains("rowGroup") ? line["rowGroup"].dump() : "none") + ", " +
              line["firstRow"].dump() + " + " + line["rows"].dump() + "\n";
  }
  return places;
}

TEST(PublisherParquetTest, TheIndexSaysTheRowGroupAndWhatTheWorkerMade) {
  const std::string two = RowGroupOf(2, "int64");
  const std::string zero = RowGroupOf(1, "int64");
  for (size_t cut = 1; cut < two.size(); cut += 7) {
    JobOfThree job({two.substr(0, cut), two.substr(cut)}, {"", zero});
    for (const RowOrder order : {RowOrder::kMiniBatch, RowOrder::kCompletion}) {
      MemorySink sink;
      const auto published =
          job.PublishTo(sink, {.order = order, .format = api::OutputFormat::kParquet});
      ASSERT_TRUE(published.ok()) << published.error().message;
      EXPECT_EQ(PlacesIn(sink.index()), order == RowOrder::kMiniBatch
                                            ? "0: 0, 0 + 1\n2: 0, 1 + 2\n"
                                            : "2: 0, 0 + 2\n0: 0, 2 + 1\n");
      for (const json& line : Lines(sink.index())) {
        if (!line.contains("miniBatch")) continue;
        EXPECT_EQ(line["sha256"], Sha256Hex(line["miniBatch"] == 2 ? two : zero));
      }
    }
  }
}

TEST(PublisherParquetTest, AResultThatIsLargeHasARowGroupOfItsOwn) {
  JobOfThree job({"", RowGroupOf(200'000, "int64")}, {"", RowGroupOf(1, "int64")});
  MemorySink sink;
  ASSERT_TRUE(job.PublishTo(sink, {.format = api::OutputFormat::kParquet}).ok());
  EXPECT_EQ(RowGroupsOf(*sink.object()), (std::vector<uint64_t>{1, 200'000}));
  // The count of rows is the agent's, which this job has told as two.
  EXPECT_EQ(PlacesIn(sink.index()), "0: 0, 0 + 1\n2: 1, 1 + 2\n");
}

TEST(PublisherParquetTest, AMiniBatchWithoutRowsIsInNoRowGroup) {
  JobOfThree job({"", RowGroupOf(2, "int64")}, {"", ""});
  MemorySink sink;
  ASSERT_TRUE(job.PublishTo(sink, {.format = api::OutputFormat::kParquet}).ok());
  EXPECT_EQ(PlacesIn(sink.index()), "0: none, 0 + 0\n2: 0, 0 + 2\n");
}

TEST(PublisherParquetTest, ColumnsAreThoseOfAllWhateverTheOrder) {
  const std::string two = RowGroupOf(2, "int64");
  for (size_t cut = 1; cut < two.size(); ++cut) {
    JobOfThree job({two.substr(0, cut), two.substr(cut)}, {"", RowGroupOf(1, "double")});
    for (const RowOrder order : {RowOrder::kMiniBatch, RowOrder::kCompletion}) {
      MemorySink sink;
      const auto published =
          job.PublishTo(sink, {.order = order, .format = api::OutputFormat::kParquet});
      ASSERT_TRUE(published.ok()) << published.error().message;
      EXPECT_EQ(RowGroupsOf(*sink.object()), std::vector<uint64_t>{3});
    }
  }
}

TEST(PublisherParquetTest, WhatDoesNotFitPublishesNothing) {
  const std::string one = RowGroupOf(1, "int64");
  const auto refusal = [](const std::string& of_two, const std::string& of_zero,
                          const std::vector<std::string>& columns) {
    JobOfThree job({"", of_two}, {"", of_zero});
    MemorySink sink;
    const auto published =
        job.PublishTo(sink, {.format = api::OutputFormat::kParquet, .columns = columns});
    EXPECT_EQ(sink.object(), nullptr);
    return published.ok() ? Error{Code::kInternal, ""} : published.error();
  };
  const Error types = refusal(RowGroupOf(2, "text"), one, {});
  EXPECT_EQ(types.code, Code::kInvalid);
  EXPECT_EQ(types.message.find("mini-batch 2 has text in the column a, and mini-batch 0"), 0U);
  const Error names = refusal(RowGroupOf(2, "int64"), one, {"b"});
  EXPECT_EQ(names.code, Code::kInvalid);
  EXPECT_EQ(names.message.find("mini-batch 0 has the column a"), 0U);
  for (const std::string& broken : {std::string("text\n"), one.substr(0, one.size() - 1)}) {
    EXPECT_EQ(refusal(broken, one, {}).code, Code::kCorrupt);
    EXPECT_EQ(refusal(one, broken, {}).code, Code::kCorrupt);
  }
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

  sink.EndToken();
  const auto stale = PublishOutput(sink, *ledger_, state_, {});
  EXPECT_EQ(stale.error().code, Code::kStale);
  EXPECT_EQ(sink.object(), nullptr);
}

TEST_F(PublisherTest, ATokenThatEndsWhileRowsAreAppendedPublishesNothing) {
  MemorySink sink;
  const auto writer = sink.Begin(4);
  ASSERT_TRUE((*writer)->Append("rows").ok());
  EXPECT_EQ(sink.object(), nullptr) << "out of sight";
  sink.EndToken();
  EXPECT_EQ((*writer)->End({}, {})->end, Committed::kStale);

  const std::unique_ptr<Sink> folder = MakeFolderSink(files_, kOutput, ledger_->token_path(), {});
  const auto file = folder->Begin(4);
  ASSERT_TRUE((*file)->Append("rows").ok());
  EXPECT_EQ(Contents(), "(none)") << "out of sight";
  const std::unique_ptr<ledger::Ledger> successor = Open();
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
}  // namespace parallelrun::output
