// Objects as files, on a disk that fails.
#include "agent/objects/object_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "base/thread.h"
#include "tests/support/disk_files.h"
#include "tests/support/fault_files.h"
#include "tests/support/memory_store.h"
#include "tests/support/temp_folder.h"

namespace parallelrun::agent {
namespace {

constexpr char kFolder[] = "/work/objects-0";

class ObjectFilesTest : public ::testing::Test {
 protected:
  ObjectFilesTest() { EXPECT_TRUE(disk_.MakeFolders("/work").ok()); }

  std::unique_ptr<store::Object> Object(const std::string& bytes) {
    const std::string name = std::to_string(++made_);
    objects_.Put("memory://bucket/" + name, bytes);
    Result<std::unique_ptr<store::Object>> opened = store_->Open(name);
    EXPECT_TRUE(opened.ok());
    return std::move(*opened);
  }

  FaultFiles disk_;
  ObjectFiles files_{disk_, kFolder};
  MemoryObjects objects_;
  std::unique_ptr<store::Store> store_ = objects_.Open("memory://bucket");
  int made_ = 0;
};

// Ten million files of a hundred bytes took eighty times the budget, and the pod was evicted.
TEST(ObjectFilesRoom, IsWholeBlocksAndThoseOfItsFolders) {
  EXPECT_EQ(RoomOf("a", 0), 4096U) << "the folder with its number";
  EXPECT_EQ(RoomOf("a", 1), 2U * 4096);
  EXPECT_EQ(RoomOf("a", 4096), 2U * 4096);
  EXPECT_EQ(RoomOf("a/b/c", 4097), 5U * 4096);
  EXPECT_EQ(RoomOf("a", UINT64_MAX), UINT64_MAX);
}

TEST_F(ObjectFilesTest, EachIsAFileBelowItsNumberAndGoesWithIt) {
  ASSERT_TRUE(files_.Begin().ok());
  ASSERT_TRUE(files_.Write(7, "a", *Object("first")).ok());
  ASSERT_TRUE(files_.Write(8, "a/b.csv", *Object("second")).ok());
  EXPECT_EQ(disk_.Contents("/work/objects-0/7/a"), "first");
  EXPECT_EQ(disk_.Contents("/work/objects-0/8/a/b.csv"), "second");
  ASSERT_TRUE(files_.Remove(8).ok());
  EXPECT_FALSE(disk_.Has("/work/objects-0/8/a/b.csv"));
  EXPECT_TRUE(disk_.Has("/work/objects-0/7/a"));
  EXPECT_TRUE(files_.Remove(8).ok()) << "it is removed already";
  ASSERT_TRUE(files_.End().ok());
  EXPECT_EQ(disk_.used(), 0U);
  EXPECT_EQ(disk_.List("/work")->size(), 0U);
}

TEST_F(ObjectFilesTest, OfARangeNoOtherByteIsRead) {
  ASSERT_TRUE(files_.Begin().ok());
  const auto object = Object("0123456789");
  ASSERT_TRUE(files_.Write(1, "a", *object, {3, 4}).ok());
  EXPECT_EQ(disk_.Contents("/work/objects-0/1/a"), std::string(3, '\0') + "3456");
  ASSERT_TRUE(files_.Write(2, "a", *object, {6, 4}).ok());
  EXPECT_EQ(disk_.Contents("/work/objects-0/2/a"), std::string(6, '\0') + "6789");
  ASSERT_TRUE(files_.Write(3, "a", *object, {10, 0}).ok());
  EXPECT_EQ(disk_.Contents("/work/objects-0/3/a"), "");
  const Status beyond = files_.Write(4, "a", *object, {6, 5});
  ASSERT_FALSE(beyond.ok());
  EXPECT_EQ(beyond.error().code, Code::kStale);
  EXPECT_FALSE(disk_.Has("/work/objects-0/4/a"));
}

TEST_F(ObjectFilesTest, PartsComeInAnyOrder) {
  ASSERT_TRUE(files_.Begin().ok());
  const auto object = Object("0123456789");
  const Result<job::ByteRange> whole = files_.Make(1, "dir/a", *object);
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(*whole, (job::ByteRange{0, 10}));
  EXPECT_EQ(disk_.Contents("/work/objects-0/1/dir/a"), "");
  EXPECT_TRUE(files_.WritePart(1, "dir/a", *object, {4, 6}).ok());
  EXPECT_TRUE(files_.WritePart(1, "dir/a", *object, {0, 4}).ok());
  EXPECT_EQ(disk_.Contents("/work/objects-0/1/dir/a"), "0123456789");
  const Result<job::ByteRange> slice = files_.Make(2, "a", *object, {3, 5});
  ASSERT_TRUE(slice.ok());
  EXPECT_EQ(*slice, (job::ByteRange{3, 5}));
  EXPECT_TRUE(files_.WritePart(2, "a", *object, *slice).ok());
  EXPECT_EQ(disk_.Contents("/work/objects-0/2/a"), std::string(3, '\0') + "34567");
  const Result<job::ByteRange> beyond = files_.Make(3, "a", *object, {6, 5});
  ASSERT_FALSE(beyond.ok());
  EXPECT_EQ(beyond.error().code, Code::kStale);
  EXPECT_FALSE(disk_.Has("/work/objects-0/3/a"));
  disk_.FailOperation(2, {Code::kNoSpace, "full"});
  ASSERT_FALSE(files_.Make(4, "a", *object).ok());
  disk_.ClearFaults();
  EXPECT_FALSE(disk_.HasFolder("/work/objects-0/4")) << "nor an empty folder";
}

TEST_F(ObjectFilesTest, WhatAPredecessorLeftIsGone) {
  disk_.Put("/work/objects-0/3/x/y", "left");
  ASSERT_TRUE(files_.Begin().ok());
  EXPECT_EQ(disk_.used(), 0U);
  EXPECT_TRUE(files_.Write(3, "x/y", *Object("new")).ok());
}

// By its code the node knows that it is no fault of the object: the mini-batch is handed back.
TEST_F(ObjectFilesTest, OnAFullDiskNothingStaysAndThatIsSaid) {
  ASSERT_TRUE(files_.Begin().ok());
  disk_.SetCapacity(10);
  const Status full = files_.Write(1, "dir/a", *Object(std::string(100, 'x')));
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().code, Code::kNoSpace);
  EXPECT_EQ(disk_.used(), 0U);
  EXPECT_EQ(disk_.List(kFolder)->size(), 0U) << "nor an empty folder";
  disk_.SetCapacity(1000);
  ASSERT_TRUE(files_.Write(1, "dir/a", *Object(std::string(100, 'x'))).ok());
  EXPECT_EQ(disk_.Contents("/work/objects-0/1/dir/a"), std::string(100, 'x'));
}

// Whichever call fails: the error is told, nothing half-made stays, and the next try is whole.
TEST_F(ObjectFilesTest, AnyCallMayFail) {
  ASSERT_TRUE(files_.Begin().ok());
  uint64_t failed = 0;
  for (uint64_t n = 1;; ++n) {
    disk_.FailOperation(n, {Code::kInternal, "input/output error"});
    const Status written = files_.Write(n, "dir/a", *Object("bytes"));
    disk_.ClearFaults();
    if (written.ok()) break;
    ++failed;
    EXPECT_EQ(written.error().message, "input/output error") << n;
    EXPECT_FALSE(disk_.Has("/work/objects-0/" + std::to_string(n) + "/dir/a")) << n;
    ASSERT_TRUE(files_.Write(n, "dir/a", *Object("bytes")).ok()) << n;
    EXPECT_EQ(disk_.Contents("/work/objects-0/" + std::to_string(n) + "/dir/a"), "bytes");
  }
  EXPECT_GE(failed, 4U) << "two folders, the file, its bytes";
}

TEST_F(ObjectFilesTest, OneThatHangsHoldsUpNoOther) {
  ASSERT_TRUE(files_.Begin().ok());
  disk_.Hang("/work/objects-0/1");
  const auto first = Object("first");
  Thread writer("writer", [&] { EXPECT_TRUE(files_.Write(1, "a", *first).ok()); });
  disk_.AwaitHanging();
  EXPECT_TRUE(files_.Write(2, "a", *Object("second")).ok());
  EXPECT_TRUE(files_.Remove(2).ok());
  disk_.Hang("");
  writer.join();
  EXPECT_EQ(disk_.Contents("/work/objects-0/1/a"), "first");
}

TEST(ObjectFilesOnDisk, NoLinkIsFollowed) {
  TempFolder temporary;
  const std::string kept = temporary.path() + "/kept";
  ASSERT_TRUE(DiskFiles().MakeFolders(kept).ok());
  ASSERT_TRUE(PublishFile(DiskFiles(), kept + "/file", "bytes").ok());
  const std::string folder = temporary.path() + "/objects-0";
  ASSERT_TRUE(DiskFiles().MakeFolders(folder + "/1").ok());
  ASSERT_EQ(symlink(kept.c_str(), (folder + "/1/link").c_str()), 0);
  ASSERT_EQ(symlink(kept.c_str(), (folder + "/2").c_str()), 0);
  ObjectFiles files(DiskFiles(), folder);
  ASSERT_TRUE(files.Begin().ok());
  EXPECT_EQ(access((kept + "/file").c_str(), F_OK), 0);
  ASSERT_EQ(symlink(kept.c_str(), (folder + "/3").c_str()), 0);
  MemoryObjects objects;
  objects.Put("memory://bucket/a", "new");
  const std::unique_ptr<store::Store> store = objects.Open("memory://bucket");
  const auto object = store->Open("a");
  ASSERT_TRUE(object.ok());
  EXPECT_FALSE(files.Write(3, "file2", **object).ok());
  EXPECT_NE(access((kept + "/file2").c_str(), F_OK), 0);
  EXPECT_EQ(access((kept + "/file").c_str(), F_OK), 0);
  EXPECT_TRUE(files.End().ok());
  EXPECT_NE(access(folder.c_str(), F_OK), 0);
}

}  // namespace
}  // namespace parallelrun::agent
