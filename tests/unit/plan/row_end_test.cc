// Rows that end with a delimiter behind which there is no column: their first rows say it.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "plan/columns/decide_types.h"
#include "plan/columns/table_header.h"
#include "tests/unit/plan/compressed.h"
#include "tests/unit/plan/folder.h"
#include "tests/unit/plan/plans.h"

namespace parallelrun::plan {
namespace {

constexpr std::string_view kPlain = R"({"delimiter":",","encoding":"utf-8"})";
constexpr std::string_view kAtEnd = R"({"delimiter":",","delimiterAtEnd":true,"encoding":"utf-8"})";

class RowEndTest : public testing::Test {
 protected:
  std::string FormatOf(const std::string& text, PlanInput input) const {
    folder_.Write("a.csv", text);
    input.root = folder_.path();
    if (const Plan plan = MakePlan({input}); !plan.error.empty()) return plan.error;
    return std::string(PlanFromEverywhere({input}).rows(0).format);
  }
  std::string FormatOf(const std::string& text) const { return FormatOf(text, Rows("", 1)); }

  PlanFolder folder_;
};

TEST_F(RowEndTest, TheFirstRowSaysIt) {
  for (const char* text :
       {"a,b\n1,2,\n3,4,\n", "a,b\n1,2,\n3,4\n", "a,b\n1,2,", "a,b\n1,2,\"\"\n", "a,b\r\n1,2,\r\n",
        "a,b\n\n  \n1,2,\n", "a\n1,\n", "a,b\n\"x\ny\",\"z,\",\n",
        "\xEF\xBB\xBF"
        "a,b\n1,2,\n"}) {
    EXPECT_EQ(FormatOf(text), kAtEnd) << text;
  }
  for (const char* text :
       {"a,b\n1,2\n3,4,\n", "a,b\n1,2,3\n", "a,b\n1,2,,\n", "a,b\n1,\n", "a,b,\n1,2,3\n",
        "a,b,\n1,2,\n", "a,b,\n1,2,,\n", "a,b\n1,2, \n", "a,b\n1,2,NA\n"}) {
    EXPECT_EQ(FormatOf(text), kPlain) << text;
  }
}

TEST_F(RowEndTest, UnlessMoreOfTheFirstRowsContradictIt) {
  for (const char* text : {"a,b\n1,2,\n3,4\n5,6\n", "a,b\n1,2,\n3,4\n5,6,\n7,8\n9,0",
                           "a,b\r\n1,2,\r\n3,4\r\n5,6\r\n", "a,b\n1,2,\n\n\"3\n\",4\n5\n5,6\n"}) {
    EXPECT_EQ(FormatOf(text), kPlain) << text;
  }
  for (const char* text : {"a,b\n1,2,\n3,4\n", "a,b\n1,2,\n3,4\n5,6,\n7,8\n",
                           "a,b\n1,2,\n3\n4\n5\n", "a,b\n1,2,\n3,4,5\n6,7,8\n"}) {
    EXPECT_EQ(FormatOf(text), kAtEnd) << text;
  }
}

TEST_F(RowEndTest, AHundredRowsBehindTheFirstMayContradictIt) {
  const auto text = [](size_t ended, size_t plain) {
    std::string rows = "a,b\n";
    for (size_t i = 0; i < ended; ++i) rows += "1,2,\n";
    for (size_t i = 0; i < plain; ++i) rows += "3,4\n";
    return rows;
  };
  EXPECT_EQ(FormatOf(text(50, 51)), kPlain);
  EXPECT_EQ(FormatOf(text(51, 500)), kAtEnd);
}

// Bytes, and no blocks: the worker asks the same of a file in a group (test_inputs.py).
TEST_F(RowEndTest, AsFarAsTheyEndWithinTheFirst64KiB) {
  for (const char* end : {"\n", "\r", "\r\n"}) {
    const std::string first = std::string("1,2,") + end + "3,4" + end;
    for (const bool within : {true, false}) {
      const size_t size = 64 * 1024 - first.size() - 2 - std::string_view(end).size();
      const std::string long_row = std::string(size + (within ? 0 : 1), 'x') + ",2" + end;
      const std::string text = std::string("a,b") + end + first + long_row;
      for (const char* behind : {"", "5,6,", "5,6"}) {
        EXPECT_EQ(FormatOf(text + behind), within ? kPlain : kAtEnd) << behind;
        const std::string packed = FormatOf(Gzipped(text + behind));
        EXPECT_EQ(packed.find("delimiterAtEnd") == std::string::npos, within) << packed;
      }
    }
  }
}

TEST_F(RowEndTest, ALongFirstRowIsReadToItsEnd) {
  const std::string name(700'000, 'x');
  EXPECT_EQ(FormatOf("a,b\n" + name + ",2,\n3,4,\n"), kAtEnd);
  EXPECT_EQ(FormatOf("a,b\n" + name + ",2\n3,4,\n"), kPlain);
}

TEST_F(RowEndTest, WithoutAHeaderThereIsNothingBehindTheColumns) {
  EXPECT_EQ(FormatOf("1,2,\n3,4,\n", Rows("", 1, api::HeaderMode::kNone)), kPlain);
}

TEST_F(RowEndTest, EachFileSaysItForItself) {
  for (const api::HeaderMode mode : {api::HeaderMode::kAllFiles, api::HeaderMode::kFirstFile}) {
    const std::string header = mode == api::HeaderMode::kAllFiles ? "a,b\n" : "";
    folder_.Write("1.csv", "a,b\n1,2\n");
    folder_.Write("2.csv", header + "1,2,\n3,4,\n");
    folder_.Write("3.csv", header + "1,2");
    const Plan plan = PlanFromEverywhere({Rows(folder_.path(), 1, mode)});
    ASSERT_GE(plan.chunks.size(), 3u);
    EXPECT_EQ(plan.rows(0).format, kPlain);
    EXPECT_EQ(plan.rows(1).format, kAtEnd);
    EXPECT_EQ(plan.rows(plan.chunks.size() - 1).format, kPlain);
  }
}

TEST_F(RowEndTest, CompressedFilesToo) {
  EXPECT_EQ(FormatOf(Gzipped("a,b\n1,2,\n3,4,\n")),
            R"({"compressed":true,"delimiter":",","delimiterAtEnd":true,"encoding":"utf-8"})");
}

TEST_F(RowEndTest, CommentsAndEscapesAreNoFields) {
  PlanInput input = Rows("", 1);
  input.tabular.comment = "#";
  input.tabular.escape = "\\";
  EXPECT_EQ(FormatOf("#x\na,b\n# y,\n1,2\\,3,# z\n", input), kAtEnd);
  EXPECT_EQ(FormatOf("#x\na,b\n# y,\n1,2\\,\n", input), kPlain);
}

TEST_F(RowEndTest, AHeaderWithANulIsRefused) {
  using std::string_literals::operator""s;
  EXPECT_EQ(FormatOf("a,b\0c\n1,2\n"s), "Invalid: inputs[rows]: " + (folder_ / "a.csv") +
                                            ": its header holds a NUL byte, which is no text: "
                                            "remove it, or leave the file out with pattern or "
                                            "exclude");
}

TEST_F(RowEndTest, AHeaderThatIsNotUtf8NamesTheEncoding) {
  EXPECT_EQ(FormatOf("a,caf\xE9\n1,2\n"),
            "Invalid: inputs[rows]: " + (folder_ / "a.csv") +
                ": its header is not UTF-8: write the encoding that the file is in, as encoding: "
                "latin-1 (or cp1252, gbk), or convert it (iconv)");
  PlanInput input = Rows("", 1);
  input.tabular.encoding = "latin-1";
  EXPECT_EQ(FormatOf("a,caf\xE9\n1,2\n", input), R"({"delimiter":",","encoding":"latin-1"})");
}

TEST_F(RowEndTest, ItIsToldWithTheTypes) {
  folder_.Write("1.csv", "a,b\n1,2\n");
  folder_.Write("2.csv", "a,b\n1,2,\n3,007,\n");
  const PlanInput input = Rows(folder_.path(), 10);
  const auto table = DecideTypes(input, *FolderStores(DiskFiles())(input));
  ASSERT_TRUE(table.ok() && *table);
  EXPECT_TRUE((*table)->delimiter_at_end.ends_with("/2.csv"));
  const auto again = TypesFromJson(ToJson(**table));
  ASSERT_TRUE(again.ok());
  const std::string line = ColumnsLine(*again, input, 1000);
  EXPECT_NE(line.find("2.csv end with a delimiter, behind which there is no column"),
            std::string::npos)
      << line;
  EXPECT_EQ(line.find("columns: a integer, b text (\"007\" has a leading zero"), 0u) << line;
}

}  // namespace
}  // namespace parallelrun::plan
