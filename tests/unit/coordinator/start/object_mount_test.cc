#include "coordinator/start/object_mount.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace parallelrun::coordinator {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kMountinfo[] =
    "21 1 0:19 / / rw,relatime shared:1 - overlay overlay rw,lowerdir=/a\n"
    "22 21 0:20 / /proc rw,nosuid shared:2 master:3 - proc proc rw\n"
    "40 21 0:41 / /mnt/photos rw,nosuid - fuse mountpoint-s3 rw,user_id=0\n"
    "41 21 0:42 / /mnt/two\\040words rw - fuse.s3fs s3fs rw\n"
    "42 21 8:1 / /mnt/disk rw - ext4 /dev/sda1 rw\n"
    "43 42 0:43 / /mnt/disk/below rw - fuse.blobfuse2 blobfuse2 rw\n"
    "44 43 8:2 / /mnt/disk/below rw - ext4 /dev/sdb1 rw\n"
    "45 21 0:44 / /mnt/noSource rw - tmpfs\n"
    "nonsense\n"
    "46 21 0:45 / /mnt/last rw - nfs4 server:/volume rw";

TEST(ObjectMountTest, APathLiesOnTheDeepestMountAndTheLastOne) {
  const auto type = [](const char* path) { return MountOf(kMountinfo, path).type; };
  EXPECT_EQ(type("/"), "overlay");
  EXPECT_EQ(type("/mnt"), "overlay");
  EXPECT_EQ(type("/mnt/photosx"), "overlay") << "a name that only begins so";
  EXPECT_EQ(type("/mnt/photos"), "fuse");
  EXPECT_EQ(type("/mnt/photos/2026/out"), "fuse");
  EXPECT_EQ(type("/mnt/two words/out"), "fuse.s3fs");
  EXPECT_EQ(type("/mnt/disk/x"), "ext4");
  EXPECT_EQ(MountOf(kMountinfo, "/mnt/disk/below/x").source, "/dev/sdb1") << "it hides the other";
  EXPECT_EQ(type("/mnt/noSource/x"), "tmpfs");
  EXPECT_EQ(type("/mnt/last"), "nfs4");
  EXPECT_EQ(MountOf("", "/mnt").type, "");
  EXPECT_EQ(MountOf("1 2 3 4 /\n1 2 3 / / rw -\n", "/mnt").type, "");
}

TEST(ObjectMountTest, WhatShowsObjectsIsKnownByItsTypeOrItsSource) {
  const struct {
    const char* type;
    const char* source;
    const char* name;
  } mounts[] = {{"fuse", "mountpoint-s3", "Mountpoint for S3"},
                {"fuse.mount-s3", "bucket", "Mountpoint for S3"},
                {"fuse.s3fs", "s3fs", "s3fs"},
                {"fuse.goofys", "bucket", "goofys"},
                {"fuse.geesefs", "bucket", "geesefs"},
                {"fuse", "blobfuse2", "blobfuse"},
                {"fuse.blobfuse2", "container", "blobfuse"},
                {"fuse.gcsfuse", "bucket", "gcsfuse"},
                // All of these keep what is written.
                {"ext4", "s3fs", ""},
                {"nfs4", "server:/s3fs", ""},
                {"fuse.juicefs", "JuiceFS:data", ""},
                {"fuse.juicefs", "s3fs", ""},
                {"fuse.sshfs", "goofys", ""},
                {"fuse", "bucket", ""},
                {"fuseblk", "s3fs", ""},
                {"", "", ""}};
  for (const auto& [type, source, name] : mounts) {
    EXPECT_EQ(ObjectMountName({type, source}, {}), name) << type << " " << source;
  }
}

TEST(ObjectMountTest, GoofysIsKnownByTheSizeThatItMakesUp) {
  constexpr uint64_t kPebibyte = uint64_t{1} << 50;
  const MountSize made_up{kPebibyte, kPebibyte, 1'000'000'000};
  EXPECT_EQ(ObjectMountName({"fuse", "bucket"}, made_up), "goofys");
  EXPECT_EQ(ObjectMountName({"fuse.juicefs", "JuiceFS:data"}, made_up), "");
  EXPECT_EQ(ObjectMountName({"ext4", "/dev/sda1"}, made_up), "");
  EXPECT_EQ(ObjectMountName({"fuse", "x"}, {kPebibyte, kPebibyte - 4096, 1'000'000'000}), "");
  EXPECT_EQ(ObjectMountName({"fuse", "x"}, {kPebibyte, kPebibyte, 10'000}), "");
}

TEST(ObjectMountTest, TheRefusalSaysWhatAndWhereAndWhatToDo) {
  EXPECT_THAT(ObjectMountRefusal("the state", "/mnt/photos/state\n", "Mountpoint for S3"),
              AllOf(HasSubstr("the state (/mnt/photos/state\\n) lies on Mountpoint for S3, which"),
                    HasSubstr("neither append to them nor rename them"),
                    HasSubstr("output.store, or --output s3://BUCKET/PREFIX/")));
}

TEST(ObjectMountTest, AFolderOfThisMachineIsNone) {
  EXPECT_EQ(ObjectMountAt("/proc/not/there"), "");
  EXPECT_EQ(ObjectMountAt("/"), "");
  JobLayout layout;
  layout.output_folder = layout.state_folder = layout.log_folder = "/proc";
  EXPECT_TRUE(CheckMounts(layout).ok());
}

}  // namespace
}  // namespace parallelrun::coordinator
