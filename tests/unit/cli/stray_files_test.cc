#include "cli/run/stray_files.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "tests/support/temp_folder.h"

namespace parallelrun::cli {
namespace {

using ::testing::HasSubstr;

TEST(StrayFiles, WhatIsOfTheCodeOrOursIsNone) {
  const TempFolder folder;
  for (const char* name :
       {"code/score.py", "code/pkg/data.csv", "node-0-0/score.py", "node-0-0/pkg/data.csv",
        "node-0-0/logs/user/a.txt", "node-0-0/pkg/__pycache__/a.pyc", "elsewhere/own.csv"}) {
    folder.Write(name, "x");
  }
  std::filesystem::create_directory_symlink("/", folder.path("node-0-0/outputs"));
  EXPECT_EQ(StrayFiles(folder.path()), "");
  EXPECT_EQ(StrayFiles(folder.path("gone")), "");
}

TEST(StrayFiles, TheFirstAreNamedWithWhereTheyBelong) {
  const TempFolder folder;
  folder.Write("code/score.py", "x");
  for (const char* name : {"node-0-0/b.csv", "node-1-0/pkg/logs/c.csv", "node-1-1/b.csv",
                           "node-1-1/a\n.csv", "node-0-0/z.csv"}) {
    folder.Write(name, "x");
  }
  const std::string words = StrayFiles(folder.path());
  EXPECT_THAT(words, HasSubstr("the script wrote 4 files into its working folder"));
  EXPECT_THAT(words, HasSubstr(R"(: a\n.csv, b.csv, pkg/logs/c.csv and 1 more. )"));
  EXPECT_THAT(words, HasSubstr("./outputs, or the path that $(output)"));
}

}  // namespace
}  // namespace parallelrun::cli
