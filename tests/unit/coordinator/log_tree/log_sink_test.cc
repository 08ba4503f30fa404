#include "coordinator/log_tree/log_sink.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

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

}  // namespace
}  // namespace parallelrun::coordinator
