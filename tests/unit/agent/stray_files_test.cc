#include "agent/stray_files.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "tests/support/temp_folder.h"

namespace parallelrun::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(StrayFiles, WhatIsOfTheCodeOrOursIsNone) {
  const TempFolder folder;
  folder.Write("score.py", "x");
  folder.Write("pkg/data.csv", "x");
  const StrayFiles stray(folder.path());
  folder.Write("pkg/data.csv", "another text");
  folder.Write("logs/user/a.txt", "x");
  folder.Write("pkg/__pycache__/a.pyc", "x");
  std::filesystem::create_directory_symlink("/", folder.path("outputs"));
  EXPECT_EQ(stray.Look().count, 0U);
  std::filesystem::remove_all(folder.path());
  EXPECT_THAT(stray.Look().first, IsEmpty());
}

TEST(StrayFiles, TheFirstAreNamed) {
  const TempFolder folder;
  folder.Write("score.py", "x");
  const StrayFiles stray(folder.path());
  for (const char* name : {"z.csv", "b.csv", "pkg/logs/c.csv", "a\n.csv"}) folder.Write(name, "x");
  const StrayFiles::Found found = stray.Look();
  EXPECT_EQ(found.count, 4U);
  EXPECT_THAT(found.first, ElementsAre("a\\n.csv", "b.csv", "pkg/logs/c.csv"));
}

}  // namespace
}  // namespace parallelrun::agent
