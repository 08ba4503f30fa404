#include "base/open_below.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/temp_folder.h"

namespace parallelrun {
namespace {

namespace fs = std::filesystem;

using Open = int (*)(int, const std::string&, int, unsigned);

// Both ways answer alike: without openat2 the same is read, and the same refused.
class OpenBelowTest : public testing::TestWithParam<Open> {
 protected:
  OpenBelowTest() : folder_(open(root_.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)) {
    fs::create_directories(root_.path() + "/a/b");
    std::ofstream(root_.path() + "/a/b/file") << "inside";
    std::ofstream(root_.path() + "/a/other") << "beside";
    fs::create_symlink("b", root_.path() + "/a/to_b");
    fs::create_symlink("b/file", root_.path() + "/a/to_file");
    fs::create_symlink("/etc", root_.path() + "/away");
  }

  // 0, or the errno.
  int Fails(const std::string& name, int flags) {
    const Fd opened(GetParam()(folder_.get(), name, flags, 0600));
    return opened.ok() ? 0 : errno;
  }

  TempFolder root_;
  Fd folder_;
};

TEST_P(OpenBelowTest, ReadsAndMakesWhatLiesBelow) {
  const Fd file(GetParam()(folder_.get(), "./a//b/file", O_RDONLY, 0));
  ASSERT_TRUE(file.ok());
  std::string text(16, '\0');
  text.resize(static_cast<size_t>(read(file.get(), text.data(), text.size())));
  EXPECT_EQ(text, "inside");
  EXPECT_EQ(fcntl(file.get(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
  EXPECT_EQ(Fails(".", O_RDONLY | O_DIRECTORY), 0);
  EXPECT_EQ(Fails("a/b/new", O_WRONLY | O_CREAT | O_EXCL), 0);
  EXPECT_EQ(fs::status(root_.path() + "/a/b/new").permissions(), fs::perms(0600));
  EXPECT_EQ(Fails("a/b/new", O_WRONLY | O_CREAT | O_EXCL), EEXIST);
}

TEST_P(OpenBelowTest, FollowsNoLink) {
  EXPECT_EQ(Fails("a/to_b/file", O_RDONLY), ELOOP);
  EXPECT_EQ(Fails("a/to_file", O_RDONLY), ELOOP);
  EXPECT_EQ(Fails("a/to_file", O_WRONLY | O_CREAT), ELOOP);
  EXPECT_EQ(Fails("a/to_b", O_RDONLY | O_DIRECTORY), ELOOP);
  EXPECT_EQ(Fails("away/passwd", O_RDONLY), ELOOP);
}

TEST_P(OpenBelowTest, LeavesTheFolderByNoName) {
  EXPECT_EQ(Fails("/etc/passwd", O_RDONLY), EXDEV);
  EXPECT_EQ(Fails("../x", O_RDONLY), EXDEV);
  EXPECT_EQ(Fails("a/../../x", O_RDONLY), EXDEV);
}

TEST_P(OpenBelowTest, OtherErrorsAreThoseOfOpen) {
  EXPECT_EQ(Fails("", O_RDONLY), ENOENT);
  EXPECT_EQ(Fails("gone/file", O_RDONLY), ENOENT);
  EXPECT_EQ(Fails("a/b/gone", O_RDONLY), ENOENT);
  EXPECT_EQ(Fails("a/other/file", O_RDONLY), ENOTDIR);
  EXPECT_EQ(Fails("a/other", O_RDONLY | O_DIRECTORY), ENOTDIR);
}

TEST_P(OpenBelowTest, WaitsForNoOtherEndOfAPipe) {
  ASSERT_EQ(mkfifo((root_.path() + "/pipe").c_str(), 0600), 0);
  EXPECT_EQ(Fails("pipe", O_RDONLY), 0);
  EXPECT_EQ(Fails("pipe", O_WRONLY), ENXIO);
}

INSTANTIATE_TEST_SUITE_P(Ways, OpenBelowTest, testing::Values(&OpenBelow, &OpenBelowByWalking),
                         [](const auto& way) { return way.index == 0 ? "Kernel" : "Walking"; });

}  // namespace
}  // namespace parallelrun
