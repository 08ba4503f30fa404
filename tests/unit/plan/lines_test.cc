#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "plan/line_splitter.h"
#include "tests/support/disk_store.h"
#include "tests/unit/plan/folder.h"

namespace parallelrun::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Lines = std::vector<std::pair<std::string, uint32_t>>;  // bytes and their number of lines

class PlanLinesTest : public ::testing::Test {
 protected:
  // Cuts a file of `text` into slices of `lines` lines; from behind each slice the rest must come
  // out the same.
  Lines Cut(const std::string& text, uint64_t lines) {
    const std::string path = folder_.Write("a.jsonl", text);
    std::vector<job::Slice> slices = SlicesFrom(path, 0, lines);
    Lines cut;
    for (size_t i = 0; i < slices.size(); ++i) {
      const job::Slice& slice = slices[i];
      cut.emplace_back(text.substr(slice.offset, slice.length), slice.rows);
      const auto rest = SlicesFrom(path, slice.offset + slice.length, lines);
      EXPECT_EQ(rest.size(), slices.size() - i - 1);
      if (!rest.empty()) {
        EXPECT_EQ(rest[0].offset, slices[i + 1].offset);
      }
    }
    return cut;
  }

  static std::vector<job::Slice> SlicesFrom(const std::string& path, uint64_t offset,
                                            uint64_t lines) {
    const auto splitter = LineSplitter::Open(DiskStore(), NameOnDisk(path));
    EXPECT_TRUE(splitter.ok());
    (*splitter)->Seek(offset);
    std::vector<job::Slice> slices;
    while (true) {
      const auto slice = (*splitter)->Next(lines);
      EXPECT_TRUE(slice.ok());
      if (!*slice) return slices;
      slices.push_back(**slice);
    }
  }

  PlanFolder folder_;
};

TEST_F(PlanLinesTest, MiniBatchesOfLinesTheLastOneShorter) {
  EXPECT_EQ(Cut("{}\n[1]\n2\n", 2), (Lines{{"{}\n[1]\n", 2}, {"2\n", 1}}));
  EXPECT_EQ(Cut("{}\n[1]\n2", 2), (Lines{{"{}\n[1]\n", 2}, {"2", 1}}));
  EXPECT_EQ(Cut("1\n2\n", 2), (Lines{{"1\n2\n", 2}}));
  EXPECT_EQ(Cut("1\n2\n", 100), (Lines{{"1\n2\n", 2}}));
  EXPECT_EQ(Cut("1", 0), (Lines{{"1", 1}}));
}

TEST_F(PlanLinesTest, LinesEndAtLineFeedsOnly) {
  EXPECT_EQ(Cut("\"a\xE2\x80\xA8"
                "b\"\r\n\"c\rd\"\r\n",
                1),
            (Lines{{"\"a\xE2\x80\xA8"
                    "b\"\r\n",
                    1},
                   {"\"c\rd\"\r\n", 1}}));
}

TEST_F(PlanLinesTest, BlankLinesAreNone) {
  EXPECT_THAT(Cut("", 1), IsEmpty());
  EXPECT_THAT(Cut("\n \t\r\n\n", 1), IsEmpty());
  EXPECT_EQ(Cut("1\n2\n\n  \n\n", 1), (Lines{{"1\n", 1}, {"2\n", 1}}));
  EXPECT_EQ(Cut("\n1\n\n2\n3\n", 2), (Lines{{"\n1\n\n2\n", 2}, {"3\n", 1}}));
}

TEST_F(PlanLinesTest, ByteOrderMarkIsPassedOver) {
  EXPECT_EQ(Cut("\xEF\xBB\xBF{}\n{}\n", 1), (Lines{{"{}\n", 1}, {"{}\n", 1}}));
  EXPECT_THAT(Cut("\xEF\xBB\xBF", 1), IsEmpty());
}

// Lines and blanks that the reader's blocks cut anywhere.
TEST_F(PlanLinesTest, LinesOverTheEndsOfBlocks) {
  constexpr size_t kBlock = 256 * 1024;
  for (const size_t size : {kBlock - 2, kBlock - 1, kBlock, kBlock + 1, 3 * kBlock}) {
    const std::string line = "\"" + std::string(size, ' ') + "\"\n";
    const std::string blank = std::string(size, ' ') + "\n";
    EXPECT_EQ(Cut(line + blank + line, 1), (Lines{{line, 1}, {blank + line, 1}})) << size;
  }
}

TEST_F(PlanLinesTest, AMissingFile) {
  EXPECT_EQ(LineSplitter::Open(DiskStore(), NameOnDisk(folder_ / "none")).error().code,
            Code::kNotFound);
}

}  // namespace
}  // namespace parallelrun::plan
