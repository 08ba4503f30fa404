#include "cli/run/run_folder.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/temp_folder.h"

namespace parallelrun::cli {
namespace {

namespace fs = std::filesystem;

class RunFolderTest : public testing::Test {
 protected:
  RunFolderTest() {
    if (const char* before = getenv("TMPDIR")) before_ = before;
    setenv("TMPDIR", below_.c_str(), 1);
  }
  ~RunFolderTest() override {
    if (before_) {
      setenv("TMPDIR", before_->c_str(), 1);
    } else {
      unsetenv("TMPDIR");
    }
  }
  size_t Count() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(below_), {}));
  }

  const TempFolder temp_;
  const std::string below_ = temp_.path();
  std::optional<std::string> before_;
};

TEST_F(RunFolderTest, GoesWithTheCommand) {
  {
    RunFolder folder;
    ASSERT_TRUE(folder.Make().ok());
    EXPECT_EQ(fs::path(folder.path()).parent_path(), below_);
    std::ofstream(folder.path() + "/file") << "x";
    EXPECT_EQ(Count(), 1u);
  }
  EXPECT_EQ(Count(), 0u);
}

TEST_F(RunFolderTest, WhatAKilledCommandLeftIsRemovedByTheNext) {
  const pid_t child = fork();
  if (child == 0) {
    RunFolder folder;
    const bool made = folder.Make().ok();
    std::ofstream(folder.path() + "/file") << "x";
    _exit(made ? 0 : 1);  // as SIGKILL: nothing is cleaned up
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  ASSERT_EQ(Count(), 1u);
  RunFolder folder;
  ASSERT_TRUE(folder.Make().ok());
  EXPECT_EQ(Count(), 1u);
  EXPECT_FALSE(fs::exists(folder.path() + "/file"));
}

// So that a command that is killed while it removes a folder leaves one that the next removes.
TEST_F(RunFolderTest, TheLockIsRemovedLast) {
  const int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  ASSERT_GE(watch, 0);
  {
    RunFolder folder;
    ASSERT_TRUE(folder.Make().ok());
    for (const char* name : {"a", "z"}) std::ofstream(folder.path() + "/" + name) << "x";
    fs::create_directories(folder.path() + "/node/logs");
    ASSERT_GE(inotify_add_watch(watch, folder.path().c_str(), IN_DELETE), 0);
  }
  std::vector<char> events(4096);
  const ssize_t size = read(watch, events.data(), events.size());
  close(watch);
  std::vector<std::string> removed;
  for (ssize_t at = 0; at < size;) {
    inotify_event event{};
    std::memcpy(&event, events.data() + at, sizeof event);
    if (event.mask & IN_DELETE) removed.emplace_back(events.data() + at + sizeof event);
    at += static_cast<ssize_t>(sizeof event + event.len);
  }
  ASSERT_EQ(removed.size(), 4u);
  EXPECT_EQ(removed.back(), "lock");
}

TEST_F(RunFolderTest, AnotherLiveCommandKeepsItsFolder) {
  RunFolder first, second;
  ASSERT_TRUE(first.Make().ok());
  ASSERT_TRUE(second.Make().ok());
  EXPECT_TRUE(fs::exists(first.path()));
  EXPECT_TRUE(fs::exists(second.path()));
}

TEST_F(RunFolderTest, WhatIsNotOursIsLeftAlone) {
  fs::create_directories(below_ + "/parallelrun-abcdef");  // no lock
  fs::create_directories(below_ + "/parallelrun-longer-name");
  std::ofstream(below_ + "/parallelrun-longer-name/lock") << "";
  fs::create_directories(below_ + "/aside");
  std::ofstream(below_ + "/aside/lock") << "";
  fs::create_directory_symlink(below_ + "/aside", below_ + "/parallelrun-linked");
  RunFolder folder;
  ASSERT_TRUE(folder.Make().ok());
  EXPECT_EQ(Count(), 5u);
  EXPECT_TRUE(fs::exists(below_ + "/aside/lock"));
}

TEST_F(RunFolderTest, AFolderThatIsNotThereIsNamed) {
  setenv("TMPDIR", (below_ + "/missing").c_str(), 1);
  RunFolder folder;
  const Status made = folder.Make();
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.error().message.find("TMPDIR"), std::string::npos) << made.error().message;
}

}  // namespace
}  // namespace parallelrun::cli
