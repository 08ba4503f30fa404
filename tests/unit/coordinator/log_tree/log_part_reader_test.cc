#include "coordinator/log_tree/log_part_reader.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include "tests/support/disk_files.h"
#include "tests/support/temp_folder.h"

namespace parallelrun::coordinator {
namespace {

namespace fs = std::filesystem;

class LogPartReaderTest : public ::testing::Test {
 protected:
  LogPartReaderTest() {
    fs::create_directories(root_ + "/user");
    std::ofstream(root_ + "/user/short.txt") << "one\ntwo\n";
    std::ofstream(root_ + "/user/long.txt") << std::string(100'000, 'a') << "the end";
  }
  LogFolder Open() const {
    Result<LogFolder> folder = LogFolder::Open(DiskFiles(), root_);
    EXPECT_TRUE(folder.ok());
    return *folder;
  }
  Result<LogPart> Read(const std::string& name, std::optional<uint64_t> from = {}) const {
    return ReadLogPart(Open(), name, from);
  }

  const TempFolder temp_;
  const std::string root_ = temp_.path() + "/logs";
};

TEST_F(LogPartReaderTest, WithoutAPlaceItIsTheEnd) {
  const Result<LogPart> part = Read("user/long.txt");
  ASSERT_TRUE(part.ok());
  EXPECT_EQ(part->size, 100'007U);
  EXPECT_EQ(part->from, 100'007U - kMostLogPart);
  EXPECT_EQ(part->bytes.size(), kMostLogPart);
  EXPECT_TRUE(part->bytes.ends_with("athe end"));
  EXPECT_EQ(Read("user/short.txt")->bytes, "one\ntwo\n");
}

TEST_F(LogPartReaderTest, FromAPlaceOnItIsWhatFollows) {
  EXPECT_EQ(Read("user/short.txt", 4)->bytes, "two\n");
  EXPECT_EQ(Read("user/long.txt", 0)->bytes.size(), kMostLogPart);
  // One that became shorter says how long it is.
  const Result<LogPart> beyond = Read("user/short.txt", 1'000'000);
  ASSERT_TRUE(beyond.ok());
  EXPECT_EQ(std::pair(beyond->from, beyond->size), std::pair(uint64_t{8}, uint64_t{8}));
  EXPECT_EQ(beyond->bytes, "");
}

TEST_F(LogPartReaderTest, NoLinkAndNothingButAFileIsRead) {
  std::ofstream(temp_.path() + "/secret") << "not ours";
  fs::create_symlink(temp_.path() + "/secret", root_ + "/user/link.txt");
  fs::create_directory_symlink(temp_.path(), root_ + "/away");
  ASSERT_EQ(mkfifo((root_ + "/user/fifo").c_str(), 0600), 0);
  for (const char* name :
       {"user/link.txt", "away/secret", "../secret", "user/fifo", "user", "user/none.txt"}) {
    EXPECT_FALSE(Read(name).ok()) << name;
  }
  EXPECT_EQ(Read("user/none.txt").error().code, Code::kNotFound);
}

TEST_F(LogPartReaderTest, TooManyThatWaitAreTurnedAway) {
  std::promise<void> begun;
  std::promise<void> go;
  LogPartReader reader(Open());
  ASSERT_TRUE(reader.Ask("user/short.txt", {}, [&](const Result<LogPart>&) {
    begun.set_value();
    go.get_future().wait();
  }));
  begun.get_future().wait();  // the thread is at it: the others wait
  for (size_t i = 0; i < LogPartReader::kMostWaiting; ++i) {
    EXPECT_TRUE(reader.Ask("user/short.txt", {}, [](const Result<LogPart>&) {}));
  }
  EXPECT_FALSE(reader.Ask("user/short.txt", {}, [](const Result<LogPart>&) {}));
  EXPECT_FALSE(reader.Finish(Duration())) << "a read goes on";
  go.set_value();
  EXPECT_TRUE(reader.Finish(seconds(60)));
  EXPECT_FALSE(reader.Ask("user/short.txt", {}, [](const Result<LogPart>&) {}));
}

}  // namespace
}  // namespace parallelrun::coordinator
