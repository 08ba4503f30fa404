#include "base/small_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "base/fd.h"
#include "tests/support/disk_files.h"
#include "tests/support/temp_folder.h"

namespace parallelrun {
namespace {

using ::testing::HasSubstr;

class SmallFileTest : public ::testing::Test {
 protected:
  std::string With(const std::string& bytes) {
    const std::string path = folder_.path() + "/file";
    EXPECT_TRUE(PublishFile(DiskFiles(), path, bytes).ok());
    return path;
  }
  TempFolder folder_;
};

TEST_F(SmallFileTest, IsReadWholeUpToItsLimit) {
  const std::string bytes(40'000, 'x');
  const std::string path = With(bytes);
  EXPECT_EQ(*ReadSmallFile(path, bytes.size()), bytes);
  const Result<std::string> large = ReadSmallFile(path, bytes.size() - 1);
  EXPECT_EQ(large.error().code, Code::kInvalid);
  EXPECT_THAT(large.error().message, HasSubstr(path + ": it has more than 39999 bytes"));
  EXPECT_THAT(ReadSmallFile(With(std::string((1 << 20) + 1, 'x')), 1 << 20).error().message,
              HasSubstr("more than 1 MiB"));
}

TEST_F(SmallFileTest, OneThatTellsNoSizeIsReadToItsEnd) {
  const Result<std::string> text = ReadSmallFile("/proc/self/stat", 4096);
  ASSERT_TRUE(text.ok()) << text.error().message;
  EXPECT_FALSE(text->empty());
}

TEST_F(SmallFileTest, PartsOfItAreReadWhereverItStands) {
  std::string bytes(40'000, 'x');
  bytes += "end";
  const std::string path = With(bytes);
  const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(fd.ok());
  EXPECT_EQ(*ReadEnd(fd.get(), 3, "it"), "end");
  EXPECT_EQ(*ReadEnd(fd.get(), 100'000, "it"), bytes);
  EXPECT_EQ(*ReadRange(fd.get(), 39'999, 3, "it"), "xen");
  EXPECT_EQ(*ReadRange(fd.get(), 50'000, 3, "it"), "");
  EXPECT_EQ(*ReadBegin(fd.get(), 2, "it"), "xx");
  EXPECT_EQ(ReadBegin(fd.get(), 100'000, "it")->size(), bytes.size() - 2);
  EXPECT_THAT(ReadEnd(-1, 3, "it").error().message, HasSubstr("read it"));
}

TEST_F(SmallFileTest, OneThatTheCoordinatorKeepsIsReadThroughFiles) {
  const std::string path = With("begin and more");
  EXPECT_EQ(*ReadBegin(DiskFiles(), path, 5), "begin");
  EXPECT_EQ(ReadBegin(DiskFiles(), path + "x", 5).error().code, Code::kNotFound);
  EXPECT_EQ(OrEmpty(ReadBegin(DiskFiles(), path + "x", 5)), "");
}

TEST_F(SmallFileTest, WhatIsNotThereOrNoFileIsToldByName) {
  const std::string path = folder_.path() + "/none";
  EXPECT_EQ(ReadSmallFile(path, 10).error().code, Code::kNotFound);
  EXPECT_THAT(ReadSmallFile(path, 10).error().message, HasSubstr(path));
  EXPECT_THAT(ReadSmallFile(folder_.path(), 10).error().message, HasSubstr(folder_.path()));
}

TEST_F(SmallFileTest, NeitherALinkNorAPipeIsReadWhereTheFlagsForbidIt) {
  const std::string link = folder_.path() + "/link";
  ASSERT_EQ(symlink(With("x").c_str(), link.c_str()), 0);
  EXPECT_EQ(*ReadSmallFile(link, 10), "x");
  EXPECT_FALSE(ReadSmallFile(link, 10, O_NOFOLLOW).ok());
  const std::string pipe = folder_.path() + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(*ReadSmallFile(pipe, 10, O_NONBLOCK), "");  // without waiting
}

}  // namespace
}  // namespace parallelrun
