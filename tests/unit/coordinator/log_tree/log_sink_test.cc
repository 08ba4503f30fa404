#include "coordinator/log_tree/log_sink.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include "coordinator/log_tree/log_segment.h"
#include "coordinator/log_tree/log_spool.h"
#include "tests/support/disk_files.h"
#include "tests/support/temp_folder.h"

namespace parallelrun::coordinator {
namespace {

namespace fs = std::filesystem;

class LogSinkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Result<LogSink> sink = LogSink::Open(DiskFiles(), root());
    ASSERT_TRUE(sink.ok());
    sink_.emplace(std::move(*sink));
  }
  std::string root() const { return folder_ + "/logs"; }
  std::string Read(const std::string& path) const {
    std::ifstream in(path);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
  }

  const TempFolder temp_;
  const std::string folder_ = temp_.path();
  std::optional<LogSink> sink_;
};

TEST_F(LogSinkTest, WritesAtOffsetsAndRepeatsAreHarmless) {
  const std::vector<std::string> path = {"user", "stdout", "0", "process000.stdout.txt"};
  ASSERT_TRUE(sink_->Write(0, path, 0, "hello ").ok());
  ASSERT_TRUE(sink_->Write(0, path, 6, "world\n").ok());
  ASSERT_TRUE(sink_->Write(0, path, 6, "world\n").ok());
  EXPECT_EQ(Read(root() + "/user/stdout/0/process000.stdout.txt"), "hello world\n");
}

TEST_F(LogSinkTest, ANodeWritesBelowItsOwnFoldersOnly) {
  const std::vector<std::string> allowed[] = {{"user", "stderr", "3", "a.txt"},
                                              {"user", "error", "3", "a.txt"},
                                              {"user", "files", "3", "deep", "er", "a b.txt"},
                                              {"user", "entry_script_log", "3", "a"},
                                              {"sys", "node", "3", "a"},
                                              {"sys", "error", "3", "a"},
                                              {"perf", "3", "a"}};
  for (const auto& path : allowed) EXPECT_TRUE(LogSink::Allowed(3, path)) << path[1];
  const std::vector<std::string> refused[] = {{"user", "stdout", "4", "a"},
                                              {"user", "stdout", "3"},
                                              {"user", "error.txt"},
                                              {"job_result.txt"},
                                              {"sys", "master_role.txt"},
                                              {"sys", "node", "33", "a"},
                                              {"perf", "4", "a"},
                                              {"other", "x", "3", "a"},
                                              {"user", "stdout", "3", ".."},
                                              {"user", "stdout", "3", "."},
                                              {"user", "stdout", "3", ""},
                                              {"user", "stdout", "3", "a\nb"},
                                              {"user", "stdout", "3", "a/b"},
                                              {"user", "stdout", "3", std::string(256, 'a')},
                                              {"user", "files", "3", "1", "2", "3", "4", "5", "6"}};
  for (const auto& path : refused) EXPECT_FALSE(LogSink::Allowed(3, path)) << path.back();
}

TEST_F(LogSinkTest, LinksAreNeverFollowed) {
  const std::string outside = folder_ + "/outside";
  fs::create_directories(outside);
  fs::create_directories(root() + "/user");
  fs::create_directory_symlink(outside, root() + "/user/stdout");
  EXPECT_EQ(sink_->Write(0, {"user", "stdout", "0", "a"}, 0, "x").error().code, Code::kPermission);
  EXPECT_TRUE(fs::is_empty(outside));

  fs::create_directories(root() + "/user/stderr/0");
  fs::create_symlink(outside + "/file", root() + "/user/stderr/0/a");
  EXPECT_FALSE(sink_->Write(0, {"user", "stderr", "0", "a"}, 0, "x").ok());
  EXPECT_TRUE(fs::is_empty(outside));
}

TEST_F(LogSinkTest, APipeInTheWayDoesNotBlock) {
  fs::create_directories(root() + "/user/stderr/0");
  ASSERT_EQ(mkfifo((root() + "/user/stderr/0/a").c_str(), 0600), 0);
  EXPECT_FALSE(sink_->Write(0, {"user", "stderr", "0", "a"}, 0, "x").ok());
}

// Of logs that go to a store.
class LogSinkWithSegmentsTest : public LogSinkTest {
 protected:
  void SetUp() override {
    LogSinkTest::SetUp();
    Begin(1, 10);
  }
  // As a coordinator does, whose tree may hold so many bytes of nodes.
  void Begin(uint32_t epoch, uint64_t most_here) {
    const auto spool = LogSpool::Open(DiskFiles(), folder_ + "/spool", 7, epoch);
    ASSERT_TRUE(spool.ok());
    spool_ = *spool;
    sink_->KeepSegments(spool_, most_here);
  }
  bool Put(const std::string& name, uint64_t offset, const std::string& text, bool anew = false) {
    return sink_->Write(0, {"user", "files", "0", name}, offset, text, anew).ok();
  }
  std::string Here(const std::string& name) const {
    const std::string path = root() + "/user/files/0/" + name;
    return fs::exists(path) ? Read(path) : "(gone)";
  }
  // All that the segments say of a file, one record after the other.
  std::string InSegments(const std::string& name) const {
    std::string all;
    for (const LogSpool::Segment& segment : spool_->Ready({}, true)) {
      const Result<std::string> text = spool_->Read(segment);
      if (!text.ok()) return text.error().message;
      const auto read = ReadLogRecords(*text, [&](const LogRecord& record) {
        if (record.name == "user/files/0/" + name) {
          all +=
              (record.anew ? "|" : "") + std::to_string(record.offset) + std::string(record.bytes);
        }
        return Status();
      });
      EXPECT_TRUE(read.ok());
    }
    return all;
  }

  std::shared_ptr<LogSpool> spool_;
};

TEST_F(LogSinkWithSegmentsTest, WhatComesIsInTheTreeAndInASegment) {
  ASSERT_TRUE(Put("a", 0, "one"));
  ASSERT_TRUE(Put("a", 3, "two"));
  ASSERT_TRUE(Put("a", 0, "x", true));
  EXPECT_FALSE(sink_->Write(0, {"user", "files", "1", "a"}, 0, "not its own").ok());
  EXPECT_EQ(Here("a"), "x");
  EXPECT_EQ(InSegments("a"), "0one3two|0x");
  EXPECT_FALSE(spool_->IsApart("0"));
}

TEST_F(LogSinkWithSegmentsTest, AFileThatThereIsNoRoomForIsInSegmentsAlone) {
  ASSERT_TRUE(Put("a", 0, "12345"));
  ASSERT_TRUE(Put("b", 0, "12345"));
  EXPECT_FALSE(spool_->IsApart("0"));
  ASSERT_TRUE(Put("b", 5, "6"));
  EXPECT_TRUE(spool_->IsApart("0"));
  EXPECT_EQ(Here("b"), "(gone)");
  ASSERT_TRUE(Put("b", 6, "7"));
  EXPECT_EQ(Here("b"), "(gone)");
  EXPECT_EQ(InSegments("b"), "0123455667");
  // Its room is others' now; what is written anew takes what it takes.
  ASSERT_TRUE(Put("a", 5, "67890"));
  EXPECT_EQ(Here("a"), "1234567890");
  ASSERT_TRUE(Put("a", 0, "1", true));
  ASSERT_TRUE(Put("c", 0, "123456789"));
  EXPECT_EQ(Here("a") + Here("c"), "1123456789");
}

TEST_F(LogSinkWithSegmentsTest, TheNextCoordinatorKeepsNoHalfOfAFile) {
  ASSERT_TRUE(Put("a", 0, "12345"));
  ASSERT_TRUE(Put("b", 0, "123456"));
  EXPECT_EQ(Here("b"), "(gone)");
  Begin(2, 100);
  ASSERT_TRUE(Put("b", 6, "7"));
  EXPECT_EQ(Here("b"), "(gone)") << "its beginning is in a segment";
  ASSERT_TRUE(Put("a", 5, "6"));
  EXPECT_EQ(Here("a"), "123456");
  EXPECT_TRUE(spool_->IsApart("0"));
}

}  // namespace
}  // namespace parallelrun::coordinator
