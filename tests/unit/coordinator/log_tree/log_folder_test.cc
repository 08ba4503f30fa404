#include "coordinator/log_tree/log_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/support/disk_files.h"
#include "tests/support/temp_folder.h"

namespace parallelrun::coordinator {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LogFolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(outside());
    Write(outside() + "/theirs", "not ours\n");
  }
  std::string root() const { return top_ + "/logs"; }
  std::string outside() const { return top_ + "/outside"; }
  static void Write(const std::string& path, const std::string& text) {
    std::ofstream(path) << text;
  }
  static std::string Read(const std::string& path) {
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  LogFolder Open() const {
    Result<LogFolder> folder = LogFolder::Open(DiskFiles(), root());
    EXPECT_TRUE(folder.ok());
    return *folder;
  }

  const TempFolder temp_;
  const std::string top_ = temp_.path();
};

TEST_F(LogFolderTest, WhatIsPublishedIsWholeAndAlone) {
  const LogFolder folder = Open();
  ASSERT_TRUE(folder.Publish("a/b/report.txt", "first").ok());
  ASSERT_TRUE(folder.Publish("a/b/report.txt", "second").ok());
  EXPECT_EQ(Read(root() + "/a/b/report.txt"), "second");
  EXPECT_THAT(folder.List("a/b"), ElementsAre("report.txt"));
  ASSERT_TRUE(folder.Append("lines.txt", "1\n").ok());
  ASSERT_TRUE(folder.Append("lines.txt", "2\n").ok());
  EXPECT_EQ(Read(root() + "/lines.txt"), "1\n2\n");
}

TEST_F(LogFolderTest, WhatIsNotPublishedLeavesNothing) {
  const LogFolder folder = Open();
  {
    NewLogFile file(folder, "report.txt");
    file.Add("half");
  }
  EXPECT_THAT(folder.List(""), ElementsAre());
}

TEST_F(LogFolderTest, NoLinkIsEverFollowed) {
  const LogFolder folder = Open();
  fs::create_directory_symlink(outside(), root() + "/user");
  fs::create_symlink(outside() + "/theirs", root() + "/job_result.txt");
  fs::create_symlink(outside() + "/theirs", root() + "/overview.txt");

  const Status inside = folder.Publish("user/error.txt", "x");
  ASSERT_FALSE(inside.ok());
  EXPECT_EQ(inside.error().code, Code::kPermission);
  EXPECT_THAT(inside.error().message, HasSubstr(root() + "/user/error.txt"));
  EXPECT_FALSE(folder.Append("overview.txt", "x").ok());
  EXPECT_FALSE(folder.OpenRead("overview.txt").ok());
  EXPECT_FALSE(folder.OpenRead("../outside/theirs").ok());
  EXPECT_TRUE(folder.Publish("job_result.txt", "ours").ok());  // it takes the link's place
  EXPECT_FALSE(fs::is_symlink(root() + "/job_result.txt"));
  folder.RemoveAll("user/theirs");
  EXPECT_THAT(folder.List("user"), ElementsAre());
  folder.RemoveAll("user");
  EXPECT_FALSE(fs::exists(fs::symlink_status(root() + "/user")));

  EXPECT_EQ(Read(outside() + "/theirs"), "not ours\n");
  EXPECT_EQ(std::distance(fs::directory_iterator(outside()), {}), 1);
}

// As where somebody has made a folder of the report's name: told, and nothing thrown.
TEST_F(LogFolderTest, ANameThatIsTakenByAFolderIsAnError) {
  const LogFolder folder = Open();
  fs::create_directories(root() + "/report.csv/in");
  const Status published = folder.Publish("report.csv", "x");
  ASSERT_FALSE(published.ok());
  EXPECT_THAT(published.error().message, HasSubstr(root() + "/report.csv"));
  EXPECT_THAT(folder.List(""), ElementsAre("report.csv"));
}

TEST_F(LogFolderTest, ALogFolderThatIsGoneIsAnError) {
  const LogFolder folder = Open();
  fs::remove_all(root());
  EXPECT_FALSE(folder.Publish("job_result.txt", "x").ok());
  EXPECT_FALSE(folder.Append("overview.txt", "x").ok());
}

}  // namespace
}  // namespace parallelrun::coordinator
