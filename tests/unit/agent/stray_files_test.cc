#include "agent/stray_files.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "tests/support/disk_files.h"
#include "tests/support/fault_files.h"
#include "tests/support/temp_folder.h"

namespace parallelrun::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(StrayFiles, WhatIsOfTheCodeOrOursIsNone) {
  const TempFolder folder;
  folder.Write("score.py", "x");
  folder.Write("pkg/data.csv", "x");
  const StrayFiles stray(DiskFiles(), folder.path());
  folder.Write("pkg/data.csv", "another text");
  folder.Write("logs/user/a.txt", "x");
  folder.Write("pkg/__pycache__/a.pyc", "x");
  std::filesystem::create_directory_symlink("/", folder.path("outputs"));
  EXPECT_EQ(stray.Look().count, 0U);
  std::filesystem::remove_all(folder.path());
  EXPECT_THAT(stray.Look().first, IsEmpty());
}

// With staged side files there is no such link: what is written there goes with the node.
TEST(StrayFiles, AFolderNamedOutputsIsTheScripts) {
  const TempFolder folder;
  folder.Write("score.py", "x");
  const StrayFiles stray(DiskFiles(), folder.path());
  folder.Write("outputs/a.csv", "x");
  EXPECT_THAT(stray.Look().first, ElementsAre("outputs/a.csv"));
}

TEST(StrayFiles, TheFirstAreNamed) {
  const TempFolder folder;
  folder.Write("score.py", "x");
  const StrayFiles stray(DiskFiles(), folder.path());
  for (const char* name : {"z.csv", "b.csv", "pkg/logs/c.csv", "a\n.csv"}) folder.Write(name, "x");
  const StrayFiles::Found found = stray.Look();
  EXPECT_EQ(found.count, 4U);
  EXPECT_THAT(found.first, ElementsAre("a\\n.csv", "b.csv", "pkg/logs/c.csv"));
}

// The code's own files would be told as the script's.
TEST(StrayFiles, WhatWasThereAtFirstMustBeKnown) {
  FaultFiles counted;
  counted.Put("/work/pkg/a.py", "x");
  static_cast<void>(StrayFiles(counted, "/work"));
  ASSERT_GE(counted.operations(), 4U);  // two folders, each opened and listed
  for (uint64_t operation = 1; operation <= counted.operations(); ++operation) {
    FaultFiles disk;
    disk.Put("/work/pkg/a.py", "x");
    disk.FailOperation(operation, {Code::kInternal, "EIO"});
    const StrayFiles stray(disk, "/work");
    EXPECT_EQ(stray.Look().count, 0U) << operation;
  }
}

TEST(StrayFiles, WhatCannotBeLookedAtIsLeftOut) {
  for (uint64_t operation = 1; operation <= 5; ++operation) {
    FaultFiles disk;
    disk.Put("/work/pkg/a.py", "x");
    const StrayFiles stray(disk, "/work");
    disk.Put("/work/pkg/b.csv", "x");
    disk.FailOperation(operation, {Code::kInternal, "EIO"});
    EXPECT_EQ(stray.Look().count, 0U) << operation;
    EXPECT_EQ(stray.Look().count, 1U) << operation;
  }
}

}  // namespace
}  // namespace parallelrun::agent
