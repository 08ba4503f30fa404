// Uploads of side files that nodes send: begun, noted before anybody hears of them, and signed.
#include "coordinator/side_uploads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "ledger/state_notes.h"
#include "tests/support/fault_files.h"
#include "tests/support/memory_write_store.h"

namespace parallelrun::coordinator {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using Fault = MemoryWriteStore::Fault;

class SideUploadsTest : public testing::Test {
 protected:
  SideUploadsTest() : notes_(ledger::MakeFolderNotes(files_, "/state")) {
    EXPECT_TRUE(files_.MakeFolders("/state").ok());
    uploads_.emplace(
        SideUploads::Options{{&store_, notes_.get(), "out/", 7, {}}, {7, 2}, 3, seconds(600)},
        loop_);
  }

  Result<job::SideUploads> Ask(const job::SideUploadsWanted& wanted) {
    std::optional<Result<job::SideUploads>> answer;
    uploads_->Answer(
        wanted, [](job::BatchId) { return true; },
        [&](const Result<job::SideUploads>& uploads) {
          answer = uploads;
          loop_.Stop();
        });
    if (!answer) loop_.Run();
    return *answer;
  }
  static job::SideUploadsWanted Wanted(const std::string& name, uint64_t bytes = 5) {
    return {4, {{name, bytes, {1}, "", 1}}};
  }
  std::string Notes() const {
    std::string all;
    const auto names = notes_->List("uploads");
    EXPECT_TRUE(names.ok());
    for (const std::string& name : *names) all += **notes_->Read("uploads/" + name, 1 << 20);
    return all;
  }

  FaultFiles files_;
  MemoryWriteStore store_;
  std::unique_ptr<ledger::StateNotes> notes_;
  EventLoop loop_;
  std::optional<SideUploads> uploads_;
};

TEST_F(SideUploadsTest, AnUploadIsBegunNotedAndSignedForItsParts) {
  const Result<job::SideUploads> answer = Ask(Wanted("a/b.bin", (uint64_t{32} << 20) + 1));
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_EQ(answer->seconds, 600u);
  ASSERT_EQ(answer->files.size(), 1u);
  const job::SideUpload& upload = answer->files[0];
  ASSERT_EQ(upload.urls.size(), 3u);
  EXPECT_EQ(upload.urls[2], "memory://out/a/b.bin?upload=" + upload.id + "&part=3");
  EXPECT_THAT(Notes(), StartsWith(R"({"run":"0000000000000007","sideUploadsIn":"s3://bucket/"})"));
  EXPECT_THAT(Notes(), HasSubstr(upload.id));
  // The object that it becomes says whose it is.
  const Result<std::string> etag = store_.SendTo(upload.urls[0], "bytes");
  ASSERT_TRUE(store_.CompleteUpload("out/a/b.bin", upload.id, {*etag}, {}).ok());
  const store::Marks& marks = store_.Find("out/a/b.bin")->marks;
  EXPECT_EQ(marks.at("parallelrun-run"), "0000000000000007");
  EXPECT_EQ(marks.at("parallelrun-generation"), "2");
  EXPECT_THAT(marks.at("parallelrun-sha256"), StartsWith("0100"));
}

TEST_F(SideUploadsTest, MoreUrlsAreOfTheSameUploadAndOfNoOther) {
  const uint64_t large = uint64_t{20} * (uint64_t{16} << 20);
  const Result<job::SideUploads> first = Ask(Wanted("a", large));
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(first->files[0].urls.size(), job::kMostPartUrls);
  job::SideUploadsWanted more = Wanted("a", large);
  more.files[0].upload = first->files[0].id;
  more.files[0].part = 17;
  const Result<job::SideUploads> rest = Ask(more);
  ASSERT_TRUE(rest.ok()) << rest.error().message;
  ASSERT_EQ(rest->files[0].urls.size(), 4u);
  EXPECT_THAT(rest->files[0].urls[0], HasSubstr(first->files[0].id + "&part=17"));
  EXPECT_EQ(store_.uploads(), 1u);
  for (const auto& [mini_batch, name, id] :
       {std::tuple{job::BatchId{5}, std::string("a"), first->files[0].id},
        std::tuple{job::BatchId{4}, std::string("b"), first->files[0].id},
        std::tuple{job::BatchId{4}, std::string("a"), std::string("of-somebody")}}) {
    more.mini_batch = mini_batch;
    more.files[0].name = name;
    more.files[0].upload = id;
    const Result<job::SideUploads> refused = Ask(more);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, Code::kNotFound);
  }
}

TEST_F(SideUploadsTest, WhatCannotBeNotedIsToldToNobody) {
  files_.FailOperation(1, {Code::kNoSpace, "the disk is full"});
  const Result<job::SideUploads> answer = Ask(Wanted("a"));
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code, Code::kNoSpace);
  ASSERT_TRUE(Ask(Wanted("a")).ok());
}

TEST_F(SideUploadsTest, AStoreThatIsAwayIsToldAndTheOthersFilesAreNoted) {
  std::set<std::string> met;
  store_.SetFaults([&met](size_t, const std::string& what) {
    return met.insert(what).second ? Fault::kRefused : Fault::kNone;
  });
  const Result<job::SideUploads> answer = Ask(Wanted("a"));
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code, Code::kUnavailable);
  EXPECT_TRUE(Ask(Wanted("a")).ok());
  EXPECT_EQ(store_.uploads(), 1u);
}

TEST_F(SideUploadsTest, CallsThatWaitTogetherAreEachAnswered) {
  constexpr size_t kCalls = 40;
  std::vector<std::string> ids;
  for (size_t i = 0; i < kCalls; ++i) {
    uploads_->Answer(
        Wanted("f" + std::to_string(i)), [](job::BatchId) { return true; },
        [&](const Result<job::SideUploads>& uploads) {
          ASSERT_TRUE(uploads.ok());
          ids.push_back(uploads->files[0].id);
          if (ids.size() == kCalls) loop_.Stop();
        });
  }
  loop_.Run();
  EXPECT_EQ(std::set<std::string>(ids.begin(), ids.end()).size(), kCalls);
  for (const std::string& id : ids) EXPECT_THAT(Notes(), HasSubstr("\"" + id + "\""));
}

}  // namespace
}  // namespace parallelrun::coordinator
