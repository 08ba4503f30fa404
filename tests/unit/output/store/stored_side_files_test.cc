// Side files in a store: of results that count each once, of others none, whatever the store does.
#include "output/store/stored_side_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/fmt/fmt.h>

#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/hex.h"
#include "job/side_list.h"
#include "ledger/state_notes.h"
#include "output/output_file.h"
#include "output/side_files.h"
#include "output/store/side_upload_notes.h"
#include "tests/support/fault_files.h"
#include "tests/support/memory_write_store.h"

namespace parallelrun::output {
namespace {

using ::testing::HasSubstr;
using Fault = MemoryWriteStore::Fault;

constexpr uint64_t kRun = 7;

// Of the mini-batches 0 and 1 each has left two files; an attempt that counts nowhere has left one.
struct StoredSideJob {
  StoredSideJob() : notes_(ledger::MakeFolderNotes(files_, "/state")) {
    ledger::LedgerOptions options;
    options.state_folder = "/state";
    options.nonce = 1;
    options.new_run_id = kRun;
    auto claimed = ledger::Ledger::Claim(
        files_, options,
        [](const job::Record&, const job::Place&, const job::Place&) { return Status(); });
    EXPECT_TRUE(claimed.ok());
    ledger_ = std::move(*claimed);
    job::SettingsRecord settings;
    settings.generation = 1;
    settings.plan_settings = R"({"output":{"sideFiles":"Staged"}})";
    EXPECT_TRUE(ledger_->Begin(settings, std::nullopt).ok());
    EXPECT_TRUE(state_.Apply(settings, {}, {}).ok());
    job::PlanChunkRecord chunk;
    chunk.content = job::RankChunk{2};
    Append(chunk);
    SideUploadNotes noted(*notes_, store_.Location(""), kRun, 1);
    for (job::BatchId id = 0; id < 2; ++id) {
      job::SideList list{fmt::format("process000-1f/{}", id), {}};
      list.files.push_back(Sent(noted, fmt::format("a{}.txt", id), fmt::format("one of {}", id)));
      list.files.push_back(Sent(noted, fmt::format("m/{}.bin", id), ""));
      lists_.push_back(list);
      job::ResultRecord result;
      result.id = id;
      result.fence = {1, 10 + id};
      const std::string rows = job::SideListText(list) + "\n";
      result.rows = rows;
      Append(result);
    }
    EXPECT_TRUE(ledger_->Flush().ok());
    Sent(noted, "a0.txt", "of nobody");
  }

  // As an attempt leaves a file.
  job::SideFile Sent(SideUploadNotes& noted, const std::string& name, const std::string& bytes) {
    job::SideFile file = FileOf(name, bytes);
    const auto upload = store_.Begin("out/" + name, MarksOfSideFile({kRun, 1}, file.sha256));
    EXPECT_TRUE(upload.ok());
    file.upload = (*upload)->id();
    EXPECT_TRUE(noted.Add({{"out/" + name, file.upload}}).ok());
    const auto url = store_.SignPart("out/" + name, file.upload, 1, seconds(1));
    const Result<std::string> etag = store_.SendTo(url->url, bytes);
    EXPECT_TRUE(etag.ok());
    file.etags = {*etag};
    return file;
  }
  static job::SideFile FileOf(const std::string& name, const std::string& bytes) {
    Sha256 digest;
    digest.Add(bytes);
    job::SideFile file;
    file.name = name;
    file.bytes = bytes.size();
    file.sha256 = digest.Finish();
    return file;
  }
  void Append(const job::Record& record) {
    const auto at = ledger_->Append(record);
    ASSERT_TRUE(state_.Apply(record, at.record, at.rows).ok());
  }
  StoredSidePlaces Places() {
    return {&store_, notes_.get(), "out/", kRun, ReservedNames("rows.txt", true)};
  }
  Status Publish(const Replaceable& replaceable = {}) {
    return PublishSideFiles(Places(), *ledger_, state_, replaceable, [this] { return newest_; });
  }
  std::string Bytes(const std::string& name) const {
    const MemoryWriteStore::Object* const there = store_.Find("out/" + name);
    return there == nullptr ? "nothing" : there->bytes;
  }
  void ExpectAll() const {
    EXPECT_EQ(Bytes("a0.txt"), "one of 0");
    EXPECT_EQ(Bytes("a1.txt"), "one of 1");
    EXPECT_EQ(Bytes("m/0.bin"), "");
    EXPECT_EQ(Bytes("m/1.bin"), "");
    EXPECT_EQ(store_.objects(), 4u);
    EXPECT_EQ(store_.uploads(), 0u) << "those of nobody are ended";
    const auto notes = notes_->List("uploads");
    EXPECT_TRUE(notes.ok() && notes->empty());
  }

  FaultFiles files_;
  MemoryWriteStore store_;
  std::unique_ptr<ledger::StateNotes> notes_;
  std::unique_ptr<ledger::Ledger> ledger_;
  job::JobState state_;
  std::vector<job::SideList> lists_;
  Status newest_;
};

class StoredSideFilesTest : public ::testing::Test, protected StoredSideJob {};

TEST_F(StoredSideFilesTest, ThoseOfResultsThatCountAreThereAndNoUploadIsLeft) {
  EXPECT_EQ(store_.objects(), 0u) << "nobody sees an upload";
  ASSERT_TRUE(Publish().ok());
  ExpectAll();
  EXPECT_EQ(store_.Find("out/a0.txt")->marks,
            (store::Marks{{"parallelrun-run", "0000000000000007"},
                          {"parallelrun-generation", "1"},
                          {"parallelrun-sha256", Hex(lists_[0].files[0].sha256)}}));
  ASSERT_TRUE(Publish().ok()) << "again, as after a crash";
  ExpectAll();
}

TEST(StoredSideFiles, WhateverRequestFailsTheNextTryEndsIt) {
  for (const Fault fault : {Fault::kRefused, Fault::kLostAnswer}) {
    for (size_t number = 0;; ++number) {
      StoredSideJob fresh;
      std::atomic<size_t> seen{0};
      std::atomic<bool> met{false};
      fresh.store_.SetFaults([&](size_t, const std::string&) {
        const bool now = seen++ == number;
        met = met || now;
        return now ? fault : Fault::kNone;
      });
      Status published = fresh.Publish();
      fresh.store_.SetFaults(nullptr);
      if (!published.ok()) {
        EXPECT_EQ(published.error().code, Code::kUnavailable) << published.error().message;
        published = fresh.Publish();
      }
      ASSERT_TRUE(published.ok()) << published.error().message;
      fresh.ExpectAll();
      if (!met) break;
    }
  }
}

TEST_F(StoredSideFilesTest, AnUploadThatIsGoneIsNoSuccessAndIsFoundByWhoContinues) {
  store_.DropUpload(lists_[1].files[0].upload);
  const Status published = Publish();
  ASSERT_FALSE(published.ok());
  EXPECT_EQ(published.error().code, Code::kInvalid);
  EXPECT_THAT(published.error().message,
              HasSubstr("the side file a1.txt of mini-batch 1 is not in the store any more"));
  EXPECT_EQ(Bytes("a1.txt"), "nothing");
  const Result<std::vector<bool>> have = HaveSideFiles(Places(), lists_);
  ASSERT_TRUE(have.ok());
  EXPECT_EQ(*have, (std::vector<bool>{true, false}));
}

// S3 wants all parts again then, and there is nobody who has them.
TEST_F(StoredSideFilesTest, AConflictThatTakesAnUploadIsNoSuccess) {
  std::atomic<bool> met{false};
  store_.SetFaults([&met](size_t, const std::string& what) {
    return what == "complete" && !met.exchange(true) ? Fault::kConflict : Fault::kNone;
  });
  EXPECT_EQ(Publish().error().code, Code::kUnavailable);
  EXPECT_EQ(Publish().error().code, Code::kInvalid);
}

TEST_F(StoredSideFilesTest, WhatIsNotThisRunsStaysAndNothingIsPublished) {
  store_.Write("out/a1.txt", "a user's");
  const Status published = Publish();
  ASSERT_FALSE(published.ok());
  EXPECT_EQ(published.error().code, Code::kExists);
  EXPECT_THAT(published.error().message, HasSubstr("s3://bucket/out/a1.txt is there, and is not"));
  EXPECT_EQ(store_.objects(), 1u);
  EXPECT_EQ(Bytes("a1.txt"), "a user's");
  // Of a run that may replace it is replaced, as long as it is what was seen.
  Replaceable replaceable;
  replaceable.whatever = true;
  ASSERT_TRUE(Publish(replaceable).ok());
  ExpectAll();
}

TEST_F(StoredSideFilesTest, AnotherObjectWithTheMarksOfThisOneIsTold) {
  store_.Write("out/a0.txt", "another!", MarksOfSideFile({kRun, 1}, lists_[0].files[0].sha256));
  EXPECT_EQ(Publish().error().code, Code::kExists);
}

// As of an attempt whose result was void later, though some of it had been published.
TEST_F(StoredSideFilesTest, OneOfThisRunIsReplacedByThatOfTheResultThatCounts) {
  store_.Write("out/a0.txt", "old", MarksOfSideFile({kRun, 1}, FileOf("", "old").sha256));
  ASSERT_TRUE(Publish().ok());
  ExpectAll();
}

TEST_F(StoredSideFilesTest, ACoordinatorThatIsNotTheNewestPublishesNothing) {
  newest_ = Error{Code::kStale, "a newer epoch is there"};
  EXPECT_EQ(Publish().error().code, Code::kStale);
  EXPECT_EQ(store_.objects(), 0u);
  EXPECT_EQ(store_.uploads(), 5u);
}

TEST_F(StoredSideFilesTest, AnOutputThatAnotherRunHasTakenIsLeftAlone) {
  StoredSidePlaces places = Places();
  places.held = []() -> Status {
    return Error{Code::kExists, "another run has taken this output"};
  };
  const Status published = PublishSideFiles(places, *ledger_, state_, {}, [] { return Status(); });
  EXPECT_EQ(published.error().code, Code::kExists);
  EXPECT_EQ(store_.objects(), 0u);
}

TEST_F(StoredSideFilesTest, NamesOfTheJobAndFilesOfAVolumeAreRefused) {
  for (const char* const name : {"rows.txt", "rows.txt.index.jsonl", "rows.txt.run/report.html",
                                 ".rows.txt.parallelrun-claim", ".parallelrun-x"}) {
    EXPECT_TRUE(IsNameOfTheJob(ReservedNames("rows.txt", true), name)) << name;
  }
  EXPECT_FALSE(IsNameOfTheJob(ReservedNames("rows.txt", true), "rows.txts"));
  EXPECT_FALSE(IsNameOfTheJob(ReservedNames("rows.txt"), "rows.txt.run"));
  const Result<std::vector<bool>> have =
      HaveSideFiles(Places(), {{"process000-1f/0", {FileOf("a0.txt", "one of 0")}}});
  ASSERT_TRUE(have.ok());
  EXPECT_EQ(*have, std::vector<bool>{false}) << "it was never sent";
}

TEST_F(StoredSideFilesTest, UploadsOfOtherRunsAndStoresAreToldApart) {
  const auto ends = [this](uint64_t run) {
    return EndSideUploads(
        *notes_, store_, [run](uint64_t one) { return one == run; },
        [](const std::string&) { return false; });
  };
  ASSERT_TRUE(ends(kRun + 1).ok());
  EXPECT_EQ(store_.uploads(), 5u);
  SideUploadNotes other(*notes_, "s3://another/", kRun, 2);
  const auto upload = store_.Begin("out/x", {});
  ASSERT_TRUE(other.Add({{"out/x", (*upload)->id()}}).ok());
  ASSERT_TRUE(ends(kRun).ok());
  EXPECT_EQ(store_.uploads(), 1u) << "what was noted for another store stays";
  ASSERT_TRUE(notes_->Write("uploads/side-000009-000001.jsonl", "{}\n").ok());
  EXPECT_EQ(ends(kRun).error().code, Code::kCorrupt);
}

TEST_F(StoredSideFilesTest, NotesGrowToABoundAndThenOthersBegin) {
  SideUploadNotes notes(*notes_, store_.Location(""), kRun, 3);
  const std::vector<SideUploadNote> many(100, {"out/" + std::string(1000, 'n'), "id"});
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(notes.Add(many).ok());
  const auto names = notes_->List("uploads");
  ASSERT_TRUE(names.ok());
  const std::set<std::string> all(names->begin(), names->end());
  EXPECT_TRUE(all.contains("side-000003-000001.jsonl"));
  EXPECT_TRUE(all.contains("side-000003-000002.jsonl"));
  EXPECT_FALSE(all.contains("side-000003-000003.jsonl"));
}

}  // namespace
}  // namespace parallelrun::output
