#include "cli/runs/kept_code.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/small_file.h"
#include "tests/support/temp_folder.h"

namespace parallelrun::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using Words = std::vector<std::string>;

TEST(WordsForPeople, NameTheCodeWhereItIsKept) {
  const Words typed = {"parallelrun",
                       "run",
                       "/tmp/job/code/a/entry.py",
                       "--code",
                       "/tmp/job/code",
                       "--keep-code",
                       "--input",
                       "in",
                       "--events",
                       "jsonl",
                       "--ends-with-stdin",
                       "--",
                       "--events",
                       "/tmp/job/code"};
  EXPECT_THAT(
      WordsForPeople(typed, "/tmp/job/code/a/entry.py", "/tmp/job/code", "/out/state/code"),
      ElementsAre("parallelrun", "run", "/out/state/code/a/entry.py", "--code", "/out/state/code",
                  "--keep-code", "--input", "in", "--", "--events", "/tmp/job/code"));
}

TEST(WordsForPeople, AFlagMayHoldItsValue) {
  EXPECT_THAT(
      WordsForPeople({"p", "run", "c/e.py", "--code=c", "--events=jsonl"}, "c/e.py", "c", "/kept"),
      ElementsAre("p", "run", "/kept/e.py", "--code", "/kept"));
}

TEST(WordsForPeople, CodeThatStaysIsNamedAsItIs) {
  EXPECT_THAT(
      WordsForPeople({"p", "run", "e.py", "--code", ".", "--ends-with-stdin"}, "e.py", ".", ""),
      ElementsAre("p", "run", "e.py", "--code", "."));
}

TEST(WordsForPeople, WithoutAFolderOfCodeItIsThatOfTheScript) {
  EXPECT_THAT(WordsForPeople({"p", "run", "a/e.py", "--keep-code"}, "a/e.py", "", "/kept"),
              ElementsAre("p", "run", "/kept/e.py", "--keep-code"));
  EXPECT_THAT(WordsForPeople({"p", "run", "a/e.py", "--ends-with-stdin"}, "a/e.py", "", ""),
              ElementsAre("p", "run", "a/e.py"));
}

TEST(WordsForPeople, AJobFileStaysWhereItIs) {
  EXPECT_THAT(WordsForPeople({"p", "run", "job.yaml", "--code", "c", "--keep-code"}, "", "c", "/k"),
              ElementsAre("p", "run", "job.yaml", "--code", "/k", "--keep-code"));
}

TEST(KeepCode, TakesThePlaceOfWhatWasKept) {
  const TempFolder folder;
  const fs::path code = fs::path(folder.path()) / "code";
  const fs::path state = fs::path(folder.path()) / "state";
  fs::create_directories(code / "below");
  fs::create_directories(state / "code");
  std::ofstream(state / "code" / "old.py") << "old";
  std::ofstream(code / "entry.py") << "new";
  std::ofstream(code / "below" / "module.py") << "m";
  ASSERT_TRUE(KeepCode(code, state).ok());
  const std::string kept = KeptCodeFolder(state);
  EXPECT_EQ(*ReadSmallFile(kept + "/entry.py", 100), "new");
  EXPECT_EQ(*ReadSmallFile(kept + "/below/module.py", 100), "m");
  EXPECT_FALSE(fs::exists(kept + "/old.py"));
  EXPECT_EQ(fs::status(kept).permissions(), fs::perms::owner_all);
}

TEST(KeepCode, WhatIsKeptStaysWhereThatFails) {
  const TempFolder folder;
  const fs::path state = fs::path(folder.path()) / "state";
  fs::create_directories(state / "code");
  std::ofstream(state / "code" / "old.py") << "old";
  EXPECT_FALSE(KeepCode(std::string(folder.path()) + "/none", state).ok());
  EXPECT_TRUE(fs::exists(state / "code" / "old.py"));
  EXPECT_FALSE(fs::exists(state / "code.new"));
}

}  // namespace
}  // namespace parallelrun::cli
