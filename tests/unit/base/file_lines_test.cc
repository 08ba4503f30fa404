#include "base/file_lines.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "tests/support/disk_files.h"
#include "tests/support/temp_folder.h"

namespace parallelrun {
namespace {

using ::testing::ElementsAre;

class FileLinesTest : public ::testing::Test {
 protected:
  // The lines that are told; afterwards `passed_over_` says how many were not.
  std::vector<std::string> Lines(const std::string& bytes, size_t longest, size_t most = 1000) {
    const std::string path = folder_.path() + "/file";
    EXPECT_TRUE(PublishFile(DiskFiles(), path, bytes).ok());
    const auto file = DiskFiles().OpenRead(path);
    std::vector<std::string> lines;
    const Result<uint64_t> passed = EachLine(**file, longest, [&](std::string_view line) {
      lines.emplace_back(line);
      return lines.size() < most;
    });
    EXPECT_TRUE(passed.ok());
    passed_over_ = passed.ok() ? *passed : 0;
    return lines;
  }

  TempFolder folder_;
  uint64_t passed_over_ = 0;
};

TEST_F(FileLinesTest, TheLastLineNeedsNoEnd) {
  EXPECT_THAT(Lines("", 10), ElementsAre());
  EXPECT_THAT(Lines("a\n\nb\n", 10), ElementsAre("a", "b"));
  EXPECT_THAT(Lines("a\nb", 10), ElementsAre("a", "b"));
}

TEST_F(FileLinesTest, WhatIsTooLongIsPassedOverAndCounted) {
  EXPECT_THAT(Lines("abc\nabcd\nabc", 3), ElementsAre("abc", "abc"));
  EXPECT_EQ(passed_over_, 1u);
  EXPECT_THAT(Lines("a\nabcd", 3), ElementsAre("a"));
  EXPECT_EQ(passed_over_, 1u);
}

TEST_F(FileLinesTest, ALineMayLieInSeveralBlocks) {
  const std::string most(2'500'000, 'x');
  EXPECT_THAT(Lines(most + "\n" + most + "y\nb\n" + most, most.size()),
              ElementsAre(most, "b", most));
  EXPECT_EQ(passed_over_, 1u);
}

TEST_F(FileLinesTest, EndsWhereNoMoreIsWanted) {
  EXPECT_THAT(Lines("a\nb\nc\n", 10, 2), ElementsAre("a", "b"));
}

}  // namespace
}  // namespace parallelrun
