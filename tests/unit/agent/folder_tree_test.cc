// Trees of folders, on a disk that fails.
#include "agent/folder_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/disk_files.h"
#include "tests/support/fault_files.h"
#include "tests/support/temp_folder.h"

namespace parallelrun::agent {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

TEST(FolderTree, IsMadeWithWhatIsAboveIt) {
  const TempFolder t;
  for (int round = 0; round < 2; ++round) {
    const Result<std::unique_ptr<Folder>> made =
        MakeTree(DiskFiles(), t.path("a/b//c/"), Links::kRefuse);
    ASSERT_TRUE(made.ok()) << made.error().message;
    EXPECT_TRUE((*made)->Append("x.txt", "x").ok());
  }
  EXPECT_EQ(t.Read("a/b/c/x.txt"), "xx");
  t.Write("file", "x");
  EXPECT_FALSE(MakeTree(DiskFiles(), t.path("file/b"), Links::kRefuse).ok());
}

TEST(FolderTree, AnErrorOfItsMakingIsTold) {
  FaultFiles counted;
  ASSERT_TRUE(counted.MakeFolders("/work").ok());
  const uint64_t before = counted.operations();
  ASSERT_TRUE(MakeTree(counted, "/work/a/b", Links::kRefuse).ok());
  for (uint64_t operation = 1; operation <= counted.operations() - before; ++operation) {
    FaultFiles disk;
    ASSERT_TRUE(disk.MakeFolders("/work").ok());
    disk.FailOperation(operation, {Code::kNoSpace, "full"});
    const auto made = MakeTree(disk, "/work/a/b", Links::kRefuse);
    ASSERT_FALSE(made.ok()) << operation;
    EXPECT_EQ(made.error().message, "full");
    EXPECT_TRUE(MakeTree(disk, "/work/a/b", Links::kRefuse).ok());
  }
}

TEST(FolderTree, AllBelowGoesAndLinksAreNotFollowed) {
  const TempFolder t;
  t.Write("kept/x", "x");
  t.Write("work/a/b/c", "x");
  t.Write("work/d", "x");
  std::filesystem::create_symlink(t.path("kept"), t.path("work/link"));
  EXPECT_TRUE(RemoveAllBelow(DiskFiles(), t.path("work")).ok());
  EXPECT_TRUE(std::filesystem::is_empty(t.path("work")));
  EXPECT_TRUE(t.Exists("kept/x"));
}

// The listing threw once, which ended the program.
TEST(FolderTree, WhatCannotBeRemovedIsToldAndKeepsNothingElse) {
  const auto fill = [](FaultFiles& disk) {
    disk.Put("/work/a/x", "x");
    disk.Put("/work/b", "x");
    disk.Put("/work/c/y", "x");
  };
  FaultFiles counted;
  fill(counted);
  ASSERT_TRUE(RemoveAllBelow(counted, "/work").ok());
  const uint64_t operations = counted.operations();
  EXPECT_EQ(counted.List("/work")->size(), 0U);
  for (uint64_t operation = 1; operation <= operations; ++operation) {
    FaultFiles disk;
    fill(disk);
    disk.FailOperation(operation, {Code::kInternal, "EIO"});
    const Status removed = RemoveAllBelow(disk, "/work");
    if (!removed.ok()) {
      EXPECT_THAT(removed.error().message, AnyOf("EIO", HasSubstr("it is not empty")));
    }
    // Where the folder itself could be read, one entry at most is left.
    EXPECT_LE(disk.List("/work")->size(), operation > 2 ? 1U : 3U) << operation;
    EXPECT_TRUE(RemoveAllBelow(disk, "/work").ok());
    EXPECT_EQ(disk.List("/work")->size(), 0U) << operation;
  }
}

}  // namespace
}  // namespace parallelrun::agent
