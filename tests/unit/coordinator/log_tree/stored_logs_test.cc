// A log tree that goes to a store: all of it, under names of its own, whatever the store does.
#include "coordinator/log_tree/stored_logs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/fault_files.h"
#include "tests/support/memory_store.h"
#include "tests/support/memory_write_store.h"

namespace parallelrun::coordinator {
namespace {

using ::testing::HasSubstr;
using Fault = MemoryWriteStore::Fault;

constexpr uint64_t kStoredRun = 0x1234;
constexpr char kStoredRunName[] = "20261123T215747Z-0000000000001234";
const WallTime kStoredNow{std::chrono::microseconds(int64_t{1795471067} * 1'000'000)};

class StoredLogsTest : public ::testing::Test {
 protected:
  StoredLogsTest() {
    auto store = std::make_unique<MemoryWriteStore>();
    store_ = store.get();
    logs_ = std::make_unique<StoredLogs>(std::move(store), objects_.Open("memory://bucket"),
                                         kStoredRunName, std::stop_source());
    const Result<LogFolder> folder = LogFolder::Open(files_, "/job/logs");
    EXPECT_TRUE(folder.ok());
    if (folder.ok()) folder_ = std::make_unique<LogFolder>(*folder);
  }
  void Write(const std::string& name, const std::string& text) {
    EXPECT_TRUE(folder_->Append(name, text).ok());
  }
  const std::string* Sent(const std::string& name) const {
    const MemoryWriteStore::Object* const object =
        store_->Find(std::string(kStoredRunName) + "/" + name);
    return object == nullptr ? nullptr : &object->bytes;
  }

  FaultFiles files_;
  MemoryObjects objects_;  // what a listing tells
  MemoryWriteStore* store_ = nullptr;
  std::unique_ptr<StoredLogs> logs_;
  std::unique_ptr<LogFolder> folder_;
};

TEST_F(StoredLogsTest, EachFileIsAnObjectBelowThePrefixOfTheRun) {
  const std::string large((uint64_t{20} << 20) + 7, 'x');
  Write("job_result.txt", "Succeeded: Completed\n");
  Write("user/stdout/0/process000.stdout.txt", "hello\n");
  Write("user/files/0/a/b/large.bin", large);
  Write("user/files/0/empty.txt", "");
  Write("previous/20261122T000000Z/job_result.txt", "of another run");
  ASSERT_TRUE(logs_->Send(*folder_).ok());
  EXPECT_EQ(store_->objects(), 4U) << "runs of before have prefixes of their own";
  EXPECT_EQ(*Sent("job_result.txt"), "Succeeded: Completed\n");
  EXPECT_EQ(*Sent("user/stdout/0/process000.stdout.txt"), "hello\n");
  EXPECT_EQ(*Sent("user/files/0/empty.txt"), "");
  EXPECT_TRUE(*Sent("user/files/0/a/b/large.bin") == large);
  EXPECT_EQ(store_->uploads(), 0U);
}

TEST_F(StoredLogsTest, WhatIsSentAgainTakesThePlaceOfWhatWasThere) {
  const std::string large(uint64_t{9} << 20, 'x');
  Write("job_error.txt", "one\n");
  Write("user/files/0/large.bin", large);
  ASSERT_TRUE(logs_->Send(*folder_).ok());
  Write("job_error.txt", "two\n");
  Write("user/files/0/large.bin", "end");
  ASSERT_TRUE(logs_->Send(*folder_).ok());
  EXPECT_EQ(*Sent("job_error.txt"), "one\ntwo\n");
  EXPECT_TRUE(*Sent("user/files/0/large.bin") == large + "end");
  EXPECT_EQ(store_->uploads(), 0U);
}

TEST_F(StoredLogsTest, TheResultComesLast) {
  Write("job_result.txt", "Failed\n");
  Write("user/error.txt", "e\n");
  Write("sys/master_role.txt", "m\n");
  std::vector<std::string> there;
  store_->SetFaults([&](size_t, const std::string&) {
    if (Sent("job_result.txt") == nullptr && store_->objects() == 2) there.emplace_back("others");
    return Fault::kNone;
  });
  ASSERT_TRUE(logs_->Send(*folder_).ok());
  EXPECT_EQ(there.size(), 1U) << "the request that wrote it found the two others";
}

// Each request fails once, in each way; a later coordinator of the run sends all of it.
TEST_F(StoredLogsTest, AStoreThatFailsAtAnyRequestLosesNothing) {
  const std::string large(uint64_t{9} << 20, 'x');
  Write("job_result.txt", "Failed\n");
  Write("user/files/0/large.bin", large);
  Write("user/error.txt", "e\n");
  for (const Fault fault : {Fault::kRefused, Fault::kLostAnswer, Fault::kConflict}) {
    bool met = true;
    for (size_t n = 0; met; ++n) {
      for (const char* name : {"job_result.txt", "user/files/0/large.bin", "user/error.txt"}) {
        store_->Drop(std::string(kStoredRunName) + "/" + name);
      }
      met = false;
      size_t seen = 0;
      store_->SetFaults([&](size_t, const std::string&) {
        if (seen++ != n) return Fault::kNone;
        met = true;
        return fault;
      });
      const Status sent = logs_->Send(*folder_);
      if (!sent.ok()) {
        EXPECT_EQ(sent.error().code, Code::kUnavailable);
        EXPECT_EQ(Sent("job_result.txt"), nullptr) << "what is not whole has no result";
        ASSERT_TRUE(logs_->Send(*folder_).ok());
      }
      EXPECT_EQ(*Sent("job_result.txt"), "Failed\n");
      EXPECT_EQ(*Sent("user/error.txt"), "e\n");
      EXPECT_TRUE(*Sent("user/files/0/large.bin") == large);
      store_->DropUploads();
    }
  }
}

TEST_F(StoredLogsTest, ASegmentNeverChanges) {
  ASSERT_TRUE(logs_->SendSegment("0/000001-00000001", "one").ok());
  ASSERT_TRUE(logs_->SendSegment("0/000001-00000001", "one").ok())
      << "by whoever did not hear that it is there";
  EXPECT_EQ(*Sent("segments/0/000001-00000001"), "one");
  store_->SetFaults([](size_t, const std::string&) { return Fault::kRefused; });
  EXPECT_EQ(logs_->SendSegment("0/000001-00000002", "two").error().code, Code::kUnavailable);
}

TEST_F(StoredLogsTest, SegmentsOfNodesWhoseFilesAreWholeAreRemoved) {
  for (const char* name :
       {"segments/0/000001-00000001", "segments/0/000001-00000002", "segments/10/000001-00000003",
        "segments/1/000001-00000004", "readme.txt"}) {
    const std::string whole = std::string(kStoredRunName) + "/" + name;
    store_->Write(whole, "x");
    objects_.Put("memory://bucket/" + whole, "x");
  }
  store_->Write("other/segments/0/000001-00000001", "x");
  objects_.Put("memory://bucket/other/segments/0/000001-00000001", "x");
  const auto not_1 = [](const std::string& node) { return node != "1"; };
  ASSERT_TRUE(logs_->RemoveSegments(not_1, 1).ok());
  EXPECT_EQ(Sent("segments/0/000001-00000001"), nullptr) << "the oldest goes first";
  EXPECT_EQ(store_->objects(), 5U);
  ASSERT_TRUE(logs_->RemoveSegments(not_1).ok());
  EXPECT_EQ(store_->objects(), 3U);
  EXPECT_NE(Sent("segments/1/000001-00000004"), nullptr);
  EXPECT_NE(Sent("readme.txt"), nullptr);
}

TEST_F(StoredLogsTest, TheReadmeIsWrittenAtTheStartAndAgain) {
  ASSERT_TRUE(logs_->Begin().ok());
  ASSERT_TRUE(logs_->Begin().ok()) << "by the next coordinator of the run";
  EXPECT_THAT(*Sent("readme.txt"), HasSubstr("job_result.txt"));
  store_->SetFaults([](size_t, const std::string&) { return Fault::kRefused; });
  EXPECT_EQ(logs_->Begin().error().code, Code::kUnavailable);
}

TEST(StoredLogsNameTest, IsTheSameForEachCoordinatorOfARun) {
  FaultFiles files;
  ASSERT_TRUE(files.MakeFolders("/job/state").ok());
  const std::unique_ptr<ledger::StateNotes> notes = ledger::MakeFolderNotes(files, "/job/state");
  const auto name = [&](uint64_t run, WallTime now) {
    const Result<std::string> made = StoredLogsName(*notes, run, now);
    EXPECT_TRUE(made.ok());
    return made.ok() ? *made : "";
  };
  EXPECT_EQ(name(kStoredRun, kStoredNow), kStoredRunName);
  EXPECT_EQ(name(kStoredRun, kStoredNow + seconds(60)), kStoredRunName);
  const std::string next = name(kStoredRun + 1, kStoredNow + seconds(60));
  EXPECT_EQ(next, "20261123T215847Z-0000000000001235");
  EXPECT_LT(kStoredRunName, next) << "they sort by time";
}

}  // namespace
}  // namespace parallelrun::coordinator
