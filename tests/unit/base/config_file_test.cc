#include "base/config_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "base/fd.h"
#include "base/files.h"

namespace parallelrun {
namespace {

std::string PathOf(int fd) { return "/dev/fd/" + std::to_string(fd); }

bool IsOpen(int fd) { return fcntl(fd, F_GETFD) >= 0; }

int WithText(const std::string& text) {
  const int fd = memfd_create("test", MFD_CLOEXEC);
  EXPECT_EQ(pwrite(fd, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
  return fd;
}

TEST(ConfigFileTest, NoDescriptorLeadsToWhatWasRead) {
  const int fd = WithText(std::string(50'000, 'x'));
  const Result<std::string> text = ReadConfigFile(PathOf(fd), 1 << 20);
  ASSERT_TRUE(text.ok()) << text.error().message;
  EXPECT_EQ(*text, std::string(50'000, 'x'));
  EXPECT_FALSE(IsOpen(fd));
}

TEST(ConfigFileTest, APipeIsReadToItsEnd) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  ASSERT_EQ(write(ends[1], "{}", 2), 2);
  close(ends[1]);
  EXPECT_EQ(*ReadConfigFile(PathOf(ends[0]), 1 << 20), "{}");
  EXPECT_FALSE(IsOpen(ends[0]));
}

TEST(ConfigFileTest, WhatIsTooLargeOrNotThereIsRefusedByName) {
  const int fd = WithText(std::string((1 << 20) + 1, 'x'));
  const Result<std::string> large = ReadConfigFile(PathOf(fd), 1 << 20);
  EXPECT_THAT(large.error().message, testing::HasSubstr(PathOf(fd) + ": it has more than 1 MiB"));
  EXPECT_FALSE(IsOpen(fd));
  EXPECT_EQ(ReadConfigFile(PathOf(fd), 1 << 20).error().code, Code::kInternal);
  EXPECT_EQ(ReadConfigFile("/none/there.json", 1 << 20).error().code, Code::kNotFound);
}

TEST(ConfigFileTest, OnlyDescriptorsThatWereGivenAreTaken) {
  EXPECT_EQ(OwnDescriptor("/dev/fd/4"), 4);
  for (const char* other : {"/dev/fd/2", "/dev/fd/", "/dev/fd/-4", "/dev/fd/4x", "/dev/fd/4/..",
                            "/dev/fd/99999999999", "/etc/fd/4", ""}) {
    EXPECT_EQ(OwnDescriptor(other), std::nullopt) << other;
  }
}

// The command gives the coordinator a file in memory for its last words.
TEST(ConfigFileTest, ADescriptorIsWrittenToInPlace) {
  const Fd fd(WithText("before"));
  const Result<std::unique_ptr<File>> file = MakeSystemFiles()->OpenOrCreate(PathOf(fd.get()));
  ASSERT_TRUE(file.ok()) << file.error().message;
  ASSERT_TRUE((*file)->WriteAt(0, "behind").ok());
  char text[6];
  ASSERT_EQ(pread(fd.get(), text, sizeof text, 0), 6);
  EXPECT_EQ(std::string(text, sizeof text), "behind");
}

}  // namespace
}  // namespace parallelrun
