#include "agent/logs/mini_batch_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/small_file.h"
#include "tests/support/fault_files.h"

namespace parallelrun::agent {
namespace {

constexpr char kLogFolder[] = "/logs/sys/node/0";
constexpr char kLogFile[] = "/logs/sys/node/0/process000.txt";
constexpr char kNodeAddress[] = "10.0.0.4";
const WallTime kWritten{seconds(1'795'252'500)};

MiniBatchNote NoteOf(uint64_t id) {
  return {{.run_ns = 3000, .cpu_ns = 2000, .elapsed_ns = 10, .items_succeeded = 1}, 0, id, 1, ""};
}

std::string LineOf(uint64_t id) { return MiniBatchLine(NoteOf(id), kNodeAddress, 99, kWritten); }

TEST(MiniBatchWriter, WritesByItself) {
  FaultFiles disk;
  ASSERT_TRUE(disk.MakeFolders("/logs").ok());
  MiniBatchWriter writer(std::make_shared<FaultFiles>(disk),
                         {kLogFolder, kNodeAddress, milliseconds(1)});
  writer.log().Open(0, 99);
  writer.log().Add({NoteOf(1)}, kWritten);
  for (;;) {
    const Result<std::unique_ptr<File>> file = disk.OpenRead(kLogFile);
    if (file.ok() && OrEmpty((*file)->ReadAt(0, 1000)) == LineOf(1)) break;
    std::this_thread::yield();
  }
}

TEST(MiniBatchWriter, WritesAllAtItsEnd) {
  FaultFiles disk;
  ASSERT_TRUE(disk.MakeFolders("/logs").ok());
  MiniBatchWriter writer(std::make_shared<FaultFiles>(disk),
                         {kLogFolder, kNodeAddress, std::chrono::hours(1), std::chrono::hours(1)});
  writer.log().Open(0, 99);
  writer.log().Add(std::vector<MiniBatchNote>(1500, NoteOf(5)), kWritten);
  writer.Finish();
  EXPECT_THAT(disk.Contents(kLogFile), ::testing::HasSubstr("|500 more mini-batches on"));
}

// Whoever tells it of a mini-batch has leases to renew.
TEST(MiniBatchWriter, ADiskThatHangsHoldsUpNobodyElse) {
  FaultFiles disk;
  ASSERT_TRUE(disk.MakeFolders("/logs").ok());
  auto files = std::make_shared<FaultFiles>(disk);
  const std::weak_ptr<FaultFiles> kept = files;
  {
    MiniBatchWriter writer(std::move(files),
                           {kLogFolder, kNodeAddress, milliseconds(1), milliseconds(1)});
    disk.Hang("/logs");
    writer.log().Open(0, 99);
    writer.log().Add({NoteOf(1)}, kWritten);
    disk.AwaitHanging();
    writer.log().Add({NoteOf(2)}, kWritten);
    writer.log().Open(1, 98);
    writer.log().Close(0);
  }
  EXPECT_TRUE(Thread::AnyLeft());
  disk.Hang("");
  while (!kept.expired()) std::this_thread::yield();  // the thread has ended
  EXPECT_EQ(disk.Contents(kLogFile), LineOf(1) + LineOf(2));
}

}  // namespace
}  // namespace parallelrun::agent
