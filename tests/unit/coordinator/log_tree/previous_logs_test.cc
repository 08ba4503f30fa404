#include "coordinator/log_tree/previous_logs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "tests/support/disk_files.h"
#include "tests/support/fault_files.h"
#include "tests/support/temp_folder.h"

namespace parallelrun::coordinator {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const WallTime kNow = WallTime(std::chrono::seconds(1795471067));  // 2026-11-23T21:57:47Z
constexpr char kAside[] = "previous/20261123T215747Z";

// What a run leaves, as far as it goes to the others.
const char* const kOfARun[] = {"user/stdout/0/process000.stdout.txt",
                               "user/metrics.jsonl",
                               "user/error.txt",
                               "perf/0/os.csv",
                               "sys/error/0/process000.txt",
                               "sys/job_report/processed_mini-batches.csv",
                               "sys/node/0/process000.txt",
                               "sys/node/1/process000.txt",
                               "job_result.txt",
                               "job_error.txt",
                               "job_error.txt.tmp-01234567",
                               "job_progress_overview.20261123.txt",
                               "failures.jsonl",
                               "report.html",
                               "dead-letter.jsonl"};
const char* const kThatStay[] = {"readme.txt", "notes.md", "sys/master_role.txt"};

class PreviousLogsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Result<LogFolder> logs = LogFolder::Open(DiskFiles(), root());
    ASSERT_TRUE(logs.ok());
    logs_.emplace(std::move(*logs));
  }
  std::string root() const { return temp_.path() + "/logs"; }
  void Put(const std::string& name) const {
    const fs::path path = fs::path(root()) / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << "old " << name;
  }
  std::string Read(const std::string& name) const {
    std::ifstream in(fs::path(root()) / name);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
  }
  bool Has(const std::string& name) const { return fs::exists(fs::path(root()) / name); }

  const TempFolder temp_;
  std::optional<LogFolder> logs_;
};

TEST_F(PreviousLogsTest, AllOfTheRunBeforeIsThereUnderItsTime) {
  for (const char* name : kOfARun) Put(name);
  for (const char* name : kThatStay) Put(name);
  Put("sys/node/0/_main.txt");
  const Result<std::string> aside = SetLogsAside(*logs_, OpenLogs::kCoordinatorAndNodes, kNow);
  ASSERT_TRUE(aside.ok()) << aside.error().message;
  EXPECT_EQ(*aside, kAside);
  for (const char* name : kOfARun) {
    EXPECT_FALSE(Has(name)) << name;
    EXPECT_EQ(Read(*aside + "/" + name), std::string("old ") + name);
  }
  for (const char* name : kThatStay) EXPECT_TRUE(Has(name)) << name;
  EXPECT_TRUE(Has("sys/node/0/_main.txt"));  // the new node has it open
}

// There a node uploads its log, from the first byte on: what is longer would end in old lines.
TEST_F(PreviousLogsTest, InAPodTheLogsOfTheNodesGoToo) {
  Put("sys/node/0/_main.txt");
  Put("sys/master_role.txt");
  ASSERT_TRUE(SetLogsAside(*logs_, OpenLogs::kCoordinator, kNow).ok());
  EXPECT_FALSE(Has("sys/node"));
  EXPECT_TRUE(Has(std::string(kAside) + "/sys/node/0/_main.txt"));
  EXPECT_TRUE(Has("sys/master_role.txt"));
}

TEST_F(PreviousLogsTest, WhereNothingWasLeftThereIsNoFolder) {
  for (const char* name : kThatStay) Put(name);
  Put("sys/node/0/_main.txt");
  const Result<std::string> aside = SetLogsAside(*logs_, OpenLogs::kCoordinatorAndNodes, kNow);
  ASSERT_TRUE(aside.ok());
  EXPECT_EQ(*aside, "");
  EXPECT_FALSE(Has("previous"));
}

TEST_F(PreviousLogsTest, TwiceInASecondThereAreTwo) {
  for (const char* expected : {"previous/20261123T215747Z", "previous/20261123T215747Z-2"}) {
    Put("job_result.txt");
    const Result<std::string> aside = SetLogsAside(*logs_, OpenLogs::kCoordinator, kNow);
    ASSERT_TRUE(aside.ok());
    EXPECT_EQ(*aside, expected);
  }
}

TEST_F(PreviousLogsTest, TheOldestGoAndWhatAUserPutThereStays) {
  Put("previous/mine/a.txt");
  Put("previous/20261123/a.txt");
  for (size_t day = 0; day < kPreviousKept + 3; ++day) {
    Put("job_result.txt");
    ASSERT_TRUE(
        SetLogsAside(*logs_, OpenLogs::kCoordinator, kNow + std::chrono::hours(24) * day).ok());
  }
  const std::vector<std::string> left = logs_->List("previous");
  ASSERT_EQ(left.size(), kPreviousKept + 2);
  EXPECT_EQ(left[1], "20261126T215747Z");
  EXPECT_TRUE(Has("previous/mine/a.txt"));
}

TEST_F(PreviousLogsTest, LinksAreMovedAndNeverFollowed) {
  const std::string outside = temp_.path() + "/outside";
  fs::create_directories(outside + "/0");
  std::ofstream(outside + "/0/process000.txt") << "somebody else's";
  fs::create_directory_symlink(outside, root() + "/user");
  fs::create_directories(root() + "/sys");
  fs::create_directory_symlink(outside, root() + "/sys/node");
  fs::create_symlink(outside + "/0/process000.txt", root() + "/job_result.txt");
  const Result<std::string> aside = SetLogsAside(*logs_, OpenLogs::kCoordinatorAndNodes, kNow);
  ASSERT_TRUE(aside.ok()) << aside.error().message;
  EXPECT_TRUE(fs::exists(outside + "/0/process000.txt"));
  EXPECT_TRUE(fs::is_symlink(root() + "/" + *aside + "/user"));
  EXPECT_TRUE(fs::is_symlink(root() + "/" + *aside + "/job_result.txt"));
}

TEST_F(PreviousLogsTest, ALinkInThePlaceOfTheFolderIsRefused) {
  const std::string outside = temp_.path() + "/outside";
  fs::create_directories(outside);
  fs::create_directory_symlink(outside, root() + "/previous");
  Put("job_result.txt");
  const Result<std::string> aside = SetLogsAside(*logs_, OpenLogs::kCoordinator, kNow);
  ASSERT_FALSE(aside.ok());
  EXPECT_EQ(aside.error().code, Code::kPermission);
  EXPECT_THAT(aside.error().message, HasSubstr("move what is in " + root() + " away"));
  EXPECT_TRUE(fs::is_empty(outside));
  EXPECT_TRUE(Has("job_result.txt"));
}

// Whatever call fails, with whatever crash: each log is there once, and a second start sets aside
// the rest.
TEST(PreviousLogsFaults, WhatFailsInTheMiddleHasLostNothingAndIsDoneAgain) {
  for (const FaultMoment moment : {FaultMoment::kBefore, FaultMoment::kAfter}) {
    for (const CrashMode crash : {CrashMode::kLoseAll, CrashMode::kKeepAll, CrashMode::kLoseSome}) {
      bool reached = true;
      for (uint64_t n = 1; reached; ++n) {
        FaultFiles files(n);
        const auto open = [&files] { return LogFolder::Open(files, "/logs"); };
        for (const char* name : kOfARun) {
          const std::string path = std::string("/logs/") + name;
          ASSERT_TRUE(files.MakeFolders(path.substr(0, path.rfind('/'))).ok());
          files.Put(path, std::string("old ") + name);
        }
        Result<LogFolder> logs = open();
        ASSERT_TRUE(logs.ok());
        const uint64_t before = files.operations();
        files.FailOperation(n, Error{Code::kInternal, "injected"}, moment);
        const Result<std::string> first = SetLogsAside(*logs, OpenLogs::kCoordinator, kNow);
        reached = files.operations() - before >= n;
        files.ClearFaults();
        files.Crash(crash);
        SCOPED_TRACE(testing::Message() << n << " " << static_cast<int>(crash));
        logs = open();
        ASSERT_TRUE(logs.ok());
        const Result<std::string> second =
            SetLogsAside(*logs, OpenLogs::kCoordinator, kNow + std::chrono::seconds(1));
        ASSERT_TRUE(second.ok()) << second.error().message;
        for (const char* name : kOfARun) {
          int found = 0;
          for (const std::string& time : logs->List("previous")) {
            const std::string path = "/logs/previous/" + time + "/" + name;
            if (!files.Has(path)) continue;
            ++found;
            EXPECT_EQ(files.Contents(path), std::string("old ") + name);
          }
          EXPECT_EQ(found, 1) << name;
          EXPECT_FALSE(files.Has(std::string("/logs/") + name)) << name;
        }
        EXPECT_TRUE(reached || first.ok());
      }
    }
  }
}

}  // namespace
}  // namespace parallelrun::coordinator
