// What a store has of a run's logs: segments while it runs, and all of the tree at its end.
#include "coordinator/log_tree/log_sender.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <utility>

#include "coordinator/log_tree/log_segment.h"
#include "tests/support/fault_files.h"
#include "tests/support/memory_store.h"
#include "tests/support/memory_write_store.h"

namespace parallelrun::coordinator {
namespace {

using StoreFault = MemoryWriteStore::Fault;

constexpr char kSenderRun[] = "20261123T215747Z-0000000000000007";
constexpr Duration kLongWait = std::chrono::hours(1);

class LogSenderTest : public ::testing::Test {
 protected:
  LogSenderTest() {
    const auto spool = LogSpool::Open(files_, "/job/state/log_segments", 7, 1);
    EXPECT_TRUE(spool.ok());
    spool_ = *spool;
    auto store = std::make_unique<MemoryWriteStore>();
    store_ = store.get();
    sender_ = std::make_unique<LogSender>(
        std::make_unique<StoredLogs>(std::move(store), objects_.Open("memory://bucket"), kSenderRun,
                                     std::stop_source()),
        spool_);
    const Result<LogFolder> folder = LogFolder::Open(files_, "/job/logs");
    EXPECT_TRUE(folder.ok());
    folder_ = std::make_unique<LogFolder>(*folder);
  }
  // An upload of a node, which is due at once.
  void Add(uint32_t node, const std::string& bytes) {
    const std::string record = EncodeLogRecord({"user/files/0/a", 0, false, bytes});
    ASSERT_TRUE(spool_->Add(node, record, Instant()).ok());
  }
  const std::string* Sent(const std::string& name) const {
    const MemoryWriteStore::Object* const object =
        store_->Find(std::string(kSenderRun) + "/" + name);
    return object == nullptr ? nullptr : &object->bytes;
  }
  // Runs until the store was asked to write a segment, and that was answered.
  void RunOnce() {
    std::promise<void> asked;
    bool told = false;
    store_->SetFaults([&](size_t, const std::string& what) {
      // The segment comes behind the readme.
      if (what == "put" && Sent("readme.txt") != nullptr && !std::exchange(told, true)) {
        asked.set_value();
      }
      return StoreFault::kNone;
    });
    sender_->Start([](const std::string& wrong) { ADD_FAILURE() << wrong; });
    asked.get_future().wait();
    sender_->Stop();
    ASSERT_TRUE(sender_->Finish(kLongWait));
  }

  FaultFiles files_;
  MemoryObjects objects_;
  std::shared_ptr<LogSpool> spool_;
  MemoryWriteStore* store_ = nullptr;
  std::unique_ptr<LogSender> sender_;
  std::unique_ptr<LogFolder> folder_;
};

TEST_F(LogSenderTest, SegmentsThatAreDueAreSentWhileTheJobRuns) {
  Add(0, "one");
  RunOnce();
  ASSERT_NE(Sent("segments/0/000001-00000001"), nullptr);
  EXPECT_EQ(*Sent("segments/0/000001-00000001"),
            EncodeLogRecord({"user/files/0/a", 0, false, "one"}));
  EXPECT_TRUE(spool_->Ready(Instant(), true).empty());
}

TEST_F(LogSenderTest, AStoreThatFailsIsToldAndTheSegmentWaits) {
  Add(0, "one");
  store_->SetFaults([](size_t, const std::string&) { return StoreFault::kRefused; });
  std::promise<std::string> told;
  sender_->Start([&](const std::string& wrong) { told.set_value(wrong); });
  EXPECT_EQ(told.get_future().get(), "the store does not answer as it should");
  sender_->Stop();
  ASSERT_TRUE(sender_->Finish(kLongWait));
  EXPECT_EQ(spool_->Ready(Instant(), true).size(), 1U);
}

TEST_F(LogSenderTest, AtTheEndAllOfTheTreeIsThereAndOfSegmentsOnlyWhatItLacks) {
  ASSERT_TRUE(folder_->Append("user/files/0/a", "one").ok());
  ASSERT_TRUE(folder_->Append("job_result.txt", "Failed\n").ok());
  Add(0, "one");
  Add(1, "two");
  ASSERT_TRUE(spool_->SetApart(1).ok());
  ASSERT_TRUE(sender_->SendAll(*folder_).ok());
  EXPECT_EQ(*Sent("user/files/0/a"), "one");
  EXPECT_EQ(*Sent("job_result.txt"), "Failed\n");
  EXPECT_EQ(Sent("segments/0/000001-00000001"), nullptr) << "the file has it";
  EXPECT_NE(Sent("segments/1/000001-00000002"), nullptr);
  EXPECT_TRUE(spool_->Ready(Instant(), true).empty());
}

TEST_F(LogSenderTest, WhatDidNotGetThereIsSentByTheNext) {
  ASSERT_TRUE(folder_->Append("job_result.txt", "Failed\n").ok());
  Add(1, "two");
  ASSERT_TRUE(spool_->SetApart(1).ok());
  store_->SetFaults([](size_t, const std::string&) { return StoreFault::kRefused; });
  EXPECT_EQ(sender_->SendAll(*folder_).error().code, Code::kUnavailable);
  EXPECT_EQ(Sent("job_result.txt"), nullptr) << "what is not whole has no result";
  EXPECT_EQ(spool_->Ready(Instant(), true).size(), 1U);
  store_->SetFaults({});
  ASSERT_TRUE(sender_->SendAll(*folder_).ok());
  EXPECT_NE(Sent("segments/1/000001-00000001"), nullptr);
}

}  // namespace
}  // namespace parallelrun::coordinator
