// What nodes upload waits on the disk until it is in a store: bounded, and lost by no crash.
#include "coordinator/log_tree/log_spool.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "coordinator/log_tree/log_segment.h"
#include "tests/support/fault_files.h"

namespace parallelrun::coordinator {
namespace {

constexpr char kSpoolFolder[] = "/job/state/log_segments";
constexpr uint64_t kSpoolRun = 7;
const Instant kSpoolBegin{seconds(100)};

std::string RecordOf(const std::string& bytes) {
  return EncodeLogRecord({"user/stdout/0/a.txt", 0, false, bytes});
}

class LogSpoolTest : public ::testing::Test {
 protected:
  std::shared_ptr<LogSpool> Open(uint32_t epoch, uint64_t run = kSpoolRun) {
    Result<std::shared_ptr<LogSpool>> spool = LogSpool::Open(files_, kSpoolFolder, run, epoch);
    EXPECT_TRUE(spool.ok());
    return spool.ok() ? *spool : nullptr;
  }
  static std::vector<std::string> Ready(LogSpool& spool, Instant now, bool all = false) {
    std::vector<std::string> names;
    for (const LogSpool::Segment& s : spool.Ready(now, all)) names.push_back(s.node + "/" + s.name);
    return names;
  }
  using Names = std::vector<std::string>;

  FaultFiles files_;
};

TEST_F(LogSpoolTest, ASegmentIsClosedAfterItsTimeOrWhenItIsFull) {
  const auto spool = Open(1);
  ASSERT_TRUE(spool->Add(0, RecordOf("one"), kSpoolBegin).ok());
  ASSERT_TRUE(spool->Add(0, RecordOf("two"), kSpoolBegin + seconds(9)).ok());
  ASSERT_TRUE(spool->Add(3, RecordOf("x"), kSpoolBegin + seconds(9)).ok());
  EXPECT_EQ(Ready(*spool, kSpoolBegin + seconds(9)), Names());
  EXPECT_EQ(Ready(*spool, kSpoolBegin + seconds(10)), Names{"0/000001-00000001"});
  ASSERT_TRUE(
      spool->Add(0, RecordOf(std::string(LogSpool::kFull, 'x')), kSpoolBegin + seconds(10)).ok());
  EXPECT_EQ(Ready(*spool, kSpoolBegin + seconds(10)),
            (Names{"0/000001-00000001", "0/000001-00000003"}));
  EXPECT_EQ(Ready(*spool, kSpoolBegin + seconds(10), true),
            (Names{"0/000001-00000001", "0/000001-00000003", "3/000001-00000002"}));
  const Result<std::string> text = spool->Read({"0", "000001-00000001"});
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(*text, RecordOf("one") + RecordOf("two"));
}

TEST_F(LogSpoolTest, WhileOneWaitsTheNextOfItsNodeGrows) {
  const auto spool = Open(1);
  ASSERT_TRUE(spool->Add(0, RecordOf("one"), kSpoolBegin).ok());
  EXPECT_EQ(Ready(*spool, kSpoolBegin + seconds(10)), Names{"0/000001-00000001"});
  ASSERT_TRUE(spool->Add(0, RecordOf("two"), kSpoolBegin + seconds(10)).ok());
  ASSERT_TRUE(spool->Add(1, RecordOf("x"), kSpoolBegin + seconds(10)).ok());
  EXPECT_EQ(Ready(*spool, kSpoolBegin + seconds(99)),
            (Names{"0/000001-00000001", "1/000001-00000003"}));
  ASSERT_TRUE(spool->Add(0, RecordOf("three"), kSpoolBegin + seconds(99)).ok());
  spool->Done({"0", "000001-00000001"});
  EXPECT_EQ(Ready(*spool, kSpoolBegin + seconds(99)),
            (Names{"0/000001-00000002", "1/000001-00000003"}));
  EXPECT_EQ(*spool->Read({"0", "000001-00000002"}), RecordOf("two") + RecordOf("three"));
}

TEST_F(LogSpoolTest, WhatACoordinatorHasLeftIsReadyForTheNext) {
  auto spool = Open(1);
  ASSERT_TRUE(spool->Add(0, RecordOf("one"), kSpoolBegin).ok());
  ASSERT_TRUE(spool->Add(12, RecordOf("two"), kSpoolBegin).ok());
  ASSERT_TRUE(spool->SetApart(12).ok());
  spool = Open(2);
  EXPECT_TRUE(spool->IsApart("12"));
  EXPECT_FALSE(spool->IsApart("0"));
  ASSERT_TRUE(spool->Add(0, RecordOf("three"), kSpoolBegin).ok());
  EXPECT_EQ(Ready(*spool, kSpoolBegin), (Names{"0/000001-00000001", "12/000001-00000002"}))
      << "nothing follows in a segment of before";
  spool->Done({"0", "000001-00000001"});
  spool->Done({"0", "000001-00000001"});
  EXPECT_EQ(Ready(*spool, kSpoolBegin), Names{"12/000001-00000002"});
  EXPECT_EQ(spool->Read({"0", "000001-00000001"}).error().code, Code::kNotFound);

  // Another run has nothing of it.
  spool = Open(3, kSpoolRun + 1);
  EXPECT_EQ(Ready(*spool, kSpoolBegin, true), Names());
  EXPECT_FALSE(spool->IsApart("12"));
  EXPECT_FALSE(files_.HasFolder(std::string(kSpoolFolder) + "/0000000000000007"));
}

TEST_F(LogSpoolTest, WhatCouldNotBeWrittenIsNotPartOfASegment) {
  const auto spool = Open(1);
  ASSERT_TRUE(spool->Add(0, RecordOf("one"), kSpoolBegin).ok());
  // The disk is full in the midst of the second.
  files_.SetCapacity(files_.used() + 5);
  EXPECT_EQ(spool->Add(0, RecordOf("two"), kSpoolBegin).error().code, Code::kNoSpace);
  files_.SetCapacity(std::nullopt);
  ASSERT_TRUE(spool->Add(0, RecordOf("two"), kSpoolBegin).ok());
  EXPECT_EQ(Ready(*spool, kSpoolBegin, true), (Names{"0/000001-00000001", "0/000001-00000002"}));
  EXPECT_EQ(*spool->Read({"0", "000001-00000001"}), RecordOf("one"));
  EXPECT_EQ(*spool->Read({"0", "000001-00000002"}), RecordOf("two"));
}

TEST_F(LogSpoolTest, WhatWaitsIsBounded) {
  const std::string record = RecordOf("one");
  const auto spool = *LogSpool::Open(files_, kSpoolFolder, kSpoolRun, 1, 2 * record.size());
  for (const uint32_t node : {0U, 1U}) {
    EXPECT_TRUE(spool->HasRoom());
    ASSERT_TRUE(spool->Add(node, record, kSpoolBegin).ok());
  }
  EXPECT_FALSE(spool->HasRoom());
  const auto again = *LogSpool::Open(files_, kSpoolFolder, kSpoolRun, 2, 2 * record.size());
  EXPECT_FALSE(again->HasRoom()) << "what was left counts";
  again->Done(again->Ready(kSpoolBegin, false).front());
  EXPECT_TRUE(again->HasRoom());
}

}  // namespace
}  // namespace parallelrun::coordinator
