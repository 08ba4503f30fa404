// Which columns of a slice may hold what a number loses: told with the cut.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "plan/columns/row_fields.h"
#include "plan/row_scanner.h"
#include "tests/unit/plan/compressed.h"
#include "tests/unit/plan/folder.h"
#include "tests/unit/plan/plans.h"

namespace parallelrun::plan {
namespace {

using Kernel = RowScanner::Kernel;

constexpr uint64_t kAllColumns = ~uint64_t{0};

// Of a text that comes in parts of these sizes, in turn.
uint64_t MayLose(std::string_view text, RowSyntax syntax, Kernel kernel,
                 const std::vector<size_t>& parts = {}) {
  syntax.fronts = true;
  RowScanner scanner(syntax, kernel);
  uint64_t rows = 0;
  for (size_t i = 0; !text.empty(); ++i) {
    std::string_view part = text.substr(0, parts.empty() ? text.size() : parts[i % parts.size()]);
    text.remove_prefix(part.size());
    while (!part.empty()) part.remove_prefix(scanner.Scan(part, kAnyField, rows).used);
  }
  scanner.Finish(rows);
  return scanner.TakeMayLose();
}

struct MayLoseCase {
  const char* text;
  uint64_t columns;
  RowSyntax syntax = {};
};
void PrintTo(const MayLoseCase& c, std::ostream* out) {
  *out << ::testing::PrintToString(c.text) << " " << c.syntax.delimiter.bytes();
}

const MayLoseCase kCases[] = {
    {"1,2\n3,4\n", 0},
    {"0,-0\n0.5,-0.5\n,\n", 0},
    {"00,1\n", 1},
    {"1,007\n", 2},
    {"1,-007\n", 2},
    {"1,--07\n", 0},
    {"1,+7\n", 2},
    {"1,-+7\n", 0},
    {"1, 7\n", 2},
    {"1,\t7\n", 2},
    {"1,\v7\n", 2},
    {"1,\f7\n", 2},
    {"1,7 \n", 0},
    {"1e+05,x0 1,x+\n", 0},
    {"a,b,c,007,e\n", 8},
    {"007,b\nc,+1\n", 3},
    {"1,2\r\n3,\r\n,4\r\n\r\n5,\n", 0},
    {"1,2\r3,\r007,4", 1},
    {"1\n+2\n", 1},
    {"+", 1},
    {"1,00", 2},
    {"1,0", 0},
    // Within quotes.
    {"\"007\",1\n", 1},
    {"1,\"-007\"\n", 2},
    {"1,\"+7\"\n", 2},
    {"1,\" 7\"\n", 2},
    {"1,\"\n7\"\n", 2},
    {"1,\"\r\n7\"\n", 2},
    {"\"\",\"0\",\"-0\"\n", 0},
    {"\"a,+1,007\",1\n", 0},
    {"\"a\n+1\n007\",00\n", 2},
    {"\"\"\"+1\",\"\"\"007\"\n", 0},
    {"\",7\",\"1,\"\n", 0},
    {"\"007", 1},
    // What stands behind a closing quote belongs to the field.
    {"\"\"007,1\n", 1},
    {"1,\"0\"07\n", 2},
    {"1,\"-\"07\n", 2},
    {"1,\"x\"y\"z\n", 2},
    {"x\"007,y\"+1\n", 0},
    // Lines that are no rows.
    {"  \n\t \n \r\n", 0},
    {" 7,1\n", 1},
    {"\t\t7\n", 1},
    {" ,1\n", 1},
    {"\v\n", 1},
    {"1\n \n2\n", 0},
    // Other delimiters.
    {"1;+7;,007\n", 2, {';'}},
    {"1\t 7\t\t007\n", 10, {'\t'}},
    {"\t\t1\t\"\t7\"\n", 8, {'\t'}},
    {"  1 \" 7\" 007\n", 24, {' '}},
    {"1++7+08\n", 8, {'+'}},
    {"1-07--07\n", 10, {'-'}},
    {"10205\n", 0, {'0'}},
    {"5|\"|07\"|07\n", 4, {'|'}},
    {"1+<>2+<>\n", 0, {Delimiter("+<>")}},
    {"1+<>+2+<>+<3\n", 6, {Delimiter("+<>")}},
    {"\"1\"+<>\"2\"+<>\"\"\n", 0, {Delimiter("+<>")}},
    {"\"1\"+<2+<>\"+<>3\"\n", 3, {Delimiter("+<>")}},
    // Without quotes nobody knows where fields begin.
    {"1,007\n", 2, {',', false}},
    {"1,\"7\"\n", kAllColumns, {',', false}},
    {"x\"y,1\n", kAllColumns, {',', false}},
    {" \"\n", kAllColumns, {',', false}},
    {"1,\"7\"07,007\n", 4, {',', true, 0, 0, kAnyField, false, '\''}},
    {"'007',\"+\",'\n'\n", 5, {',', true, 0, 0, kAnyField, false, '\''}},
    {"\"007\",\"\"7,+1\n", 4, {',', true, 0, 0, kAnyField, false, 0}},
    {"\"+1,1\"\n", 0, {',', false, 0, 0, kAnyField, false, 0}},
    // Comments and escapes.
    {"1,2#,+3\n# 007\n4,5\n", 0, {',', true, '#'}},
    {"  # 007\n", 1, {',', true, '#'}},  // a row of blanks
    {"1,+#\n#\n4,05#\n", 2, {',', true, '#'}},
    {"1,\\+2\n\\-\\05,\\\\+\n", 3, {',', true, 0, '\\'}},
    {"\"\\+1\",\"x\\\"+\",\"\\\n1\"\n", 5, {',', true, 0, '\\'}},
};

class MayLoseTest : public ::testing::TestWithParam<MayLoseCase> {};
INSTANTIATE_TEST_SUITE_P(Cases, MayLoseTest, ::testing::ValuesIn(kCases));

TEST_P(MayLoseTest, AtEachPlaceOfABlock) {
  const MayLoseCase& c = GetParam();
  const std::string text = c.text;
  for (const Kernel kernel : {Kernel::kBest, Kernel::kBytes}) {
    for (size_t before = 0; before < 130; ++before) {
      // Text, and then rows that lose nothing, so that it lies in blocks; and it comes in parts.
      const std::string front = before == 0 ? "" : std::string(before - 1, 'x') + "\n";
      const bool ends = text.ends_with('\n') || text.ends_with('\r');
      for (const std::string& behind : {std::string(), std::string(ends ? 200 : 0, 'y')}) {
        const std::string whole = front + text + behind;
        ASSERT_EQ(MayLose(whole, c.syntax, kernel), c.columns) << before;
        ASSERT_EQ(MayLose(whole, c.syntax, kernel, {before + text.size() / 2 + 1}), c.columns);
      }
    }
    ASSERT_EQ(MayLose(text + std::string(200, text.back()), c.syntax, kernel, {1}),
              MayLose(text + std::string(200, text.back()), c.syntax, Kernel::kBytes));
  }
}

bool Loses(std::string_view text) {
  if (text.empty()) return false;
  if (std::string_view("+ \t\n\v\f\r").find(text[0]) != std::string_view::npos) return true;
  if (text[0] == '-') text.remove_prefix(1);
  const auto digit = [&](size_t i) { return text.size() > i && text[i] >= '0' && text[i] <= '9'; };
  return digit(1) && text[0] == '0';
}

// Of the fields as they are taken apart for the types.
uint64_t OfFields(std::string_view text, const RowSyntax& syntax) {
  RowFields row(syntax);
  uint64_t columns = 0;
  while (row.Next(text, true)) {
    for (size_t i = 0; i < row.fields().size(); ++i) {
      if (Loses(row.fields()[i])) columns |= job::MayLoseBit(i);
    }
  }
  return columns;
}

TEST(MayLoseAnywhereTest, NothingIsLeftOutAndThePartsDoNotMatter) {
  std::mt19937 random(7);
  for (int round = 0; round < 20'000; ++round) {
    RowSyntax syntax;
    const char delimiter = ",;\t +"[random() % 5];
    syntax.delimiter = delimiter;
    if (random() % 8 == 0) syntax.comment = '#';
    if (random() % 8 == 0) syntax.escape = '\\';
    syntax.quoted = random() % 8 != 0;
    syntax.quote = "\"\"\"'\0"[random() % 5];
    // Mostly of one kind, so that whole blocks are plain as well.
    constexpr std::string_view kSome = "x7xyz1234500--++ \t\v\r\n\n\n,,,,,;\"\"''\"\"'#\\";
    const std::string_view from = kSome.substr(random() % 14, 8 + random() % 30);
    std::string text;
    for (size_t n = random() % 400; n > 0; --n) {
      text += random() % 4 == 0 ? delimiter : from[random() % from.size()];
      if (random() % 100 == 0) text.append(random() % 100, 'w');
    }
    const uint64_t found = MayLose(text, syntax, Kernel::kBytes);
    ASSERT_EQ(MayLose(text, syntax, Kernel::kBest), found) << ::testing::PrintToString(text);
    const std::vector<size_t> parts = {1 + random() % 150, 1 + random() % 90};
    ASSERT_EQ(MayLose(text, syntax, Kernel::kBest, parts), found) << ::testing::PrintToString(text);
    ASSERT_EQ(OfFields(text, syntax) & ~found, 0u) << ::testing::PrintToString(text);
  }
}

std::string Replaced(std::string_view text, char one, std::string_view several) {
  std::string out;
  for (const char c : text) {
    if (c == one) {
      out += several;
    } else {
      out += c;
    }
  }
  return out;
}

// Its front, which could be that of a number, is no part of a field.
TEST(MayLoseAnywhereTest, ADelimiterOfSeveralBytesIsAsOneByte) {
  std::mt19937 random(8);
  constexpr std::string_view kSeveral[] = {"<>", "<<>", "+<>", " <>", "\t0<>", "007<>", "-0<>"};
  for (int round = 0; round < 20'000; ++round) {
    RowSyntax syntax{';'};
    if (random() % 8 == 0) syntax.comment = '#';
    syntax.quoted = random() % 8 != 0;
    const std::string_view several = kSeveral[random() % std::size(kSeveral)];
    // Within quotes it is text, which may begin a number.
    if (several.front() != '<') syntax.quote = 0;
    constexpr std::string_view kSome = "x7x0012;;;;;;--++ \t<<\n\n\"\"\"#";
    std::string text;
    for (size_t n = random() % 200; n > 0; --n) text += kSome[random() % kSome.size()];
    const uint64_t expected = MayLose(text, syntax, Kernel::kBytes);
    syntax.delimiter = Delimiter(several);
    const std::vector<size_t> parts = {1 + random() % 9, 1 + random() % 90};
    const std::string longer = Replaced(text, ';', several);
    ASSERT_EQ(MayLose(longer, syntax, Kernel::kBest, parts), expected)
        << ::testing::PrintToString(longer);
  }
}

TEST(MayLoseAnywhereTest, ManyColumnsShareTheLastBit) {
  for (const size_t column : {0, 1, 62, 63, 64, 200}) {
    const std::string row = std::string(column, ',') + "007\n";
    const uint64_t bit = uint64_t{1} << std::min<size_t>(column, 63);
    for (const Kernel kernel : {Kernel::kBest, Kernel::kBytes}) {
      EXPECT_EQ(MayLose(row, {}, kernel), bit) << column;
      EXPECT_EQ(MayLose("1\n" + row + std::string(100, 'x'), {}, kernel), bit) << column;
    }
  }
}

PlanInput TypedRows(const std::string& root, uint64_t size,
                    api::HeaderMode header = api::HeaderMode::kAllFiles) {
  PlanInput input = Rows(root, size, header);
  input.tabular.typing = api::Typing::kOnce;
  return input;
}

class MayLosePlanTest : public testing::Test {
 protected:
  // The formats of all chunks.
  std::string Formats(const PlanInput& input) const {
    std::string formats;
    const Plan plan = PlanFromEverywhere({input});
    for (const auto& chunk : plan.chunks) {
      const auto* rows = std::get_if<job::TabularChunk>(&chunk->record.content);
      formats += rows != nullptr ? rows->format
                                 : std::get<job::TableGroupsChunk>(chunk->record.content).format;
    }
    return formats;
  }

  PlanFolder folder_;
};

TEST_F(MayLosePlanTest, EachSliceSaysItsOwn) {
  folder_.Write("1.csv", "a,b\n007,2\n3,4\n5,+6\n7,8\n09,010\n");
  folder_.Write("2.csv", "a,b\r\n1,2\r\n3, 4\r\n");
  folder_.Write("3.csv", Gzipped("a,b\n1,02\n3,4\n"));
  EXPECT_EQ(Formats(TypedRows(folder_.path(), 1)),
            R"({"delimiter":",","encoding":"utf-8","mayLose":[1]})"
            R"({"delimiter":",","encoding":"utf-8","mayLose":[0]})"
            R"({"delimiter":",","encoding":"utf-8","mayLose":[2,0]})"
            R"({"delimiter":",","encoding":"utf-8","mayLose":[3]})"
            R"({"delimiter":",","encoding":"utf-8","mayLose":[0,2]})"
            R"({"compressed":true,"delimiter":",","encoding":"utf-8","mayLose":[2]})");
}

TEST_F(MayLosePlanTest, ADelimiterOfSeveralBytes) {
  folder_.Write("1.csv", "a||b\n007||2\n3||+4||\n");
  folder_.Write("2.csv", "a||b\n1||\"2||03\"||\n3|||0||\n");
  PlanInput input = TypedRows(folder_.path(), 1);
  input.tabular.delimiter = "||";
  EXPECT_EQ(Formats(input),
            R"({"delimiter":"||","encoding":"utf-8","mayLose":[1]})"
            R"({"delimiter":"||","encoding":"utf-8","mayLose":[2]})"
            R"({"delimiter":"||","delimiterAtEnd":true,"encoding":"utf-8","mayLose":[0,0]})");
}

TEST_F(MayLosePlanTest, AHeaderIsNoRow) {
  folder_.Write("1.csv", "01, b\n1,2\n");
  EXPECT_EQ(Formats(TypedRows(folder_.path(), 1)),
            R"({"delimiter":",","encoding":"utf-8","mayLose":[0]})");
  EXPECT_EQ(Formats(TypedRows(folder_.path(), 100, api::HeaderMode::kNone)),
            R"({"delimiter":",","encoding":"utf-8","mayLose":[3]})");
}

TEST_F(MayLosePlanTest, EachFileOfAGroupSaysItsOwn) {
  folder_.Write("x/1.csv", "a,b\n1,2\n");
  folder_.Write("x/2.csv", "a,b\n1,2\n3,04\n");
  folder_.Write("y/1.csv", "a,b\n+1,2\n");
  PlanInput input = TypedRows(folder_.path(), 1);
  input.partition_format = "{k}/{n}.csv";
  input.partition_keys = {"k"};
  const std::string form = R"({"delimiter":",","delimiterAtEnd":"FirstRows","encoding":"utf-8",)";
  EXPECT_EQ(Formats(input), form + R"("mayLose":[[0,2]]})" + form + R"("mayLose":[[1]]})");
}

TEST_F(MayLosePlanTest, NothingIsSaidWhereNobodyAsks) {
  folder_.Write("1.csv", "a,b\n007,2\n");
  EXPECT_EQ(Formats(Rows(folder_.path(), 1)), R"({"delimiter":",","encoding":"utf-8"})");
  folder_.Write("1.csv", "{\"a\": 1}\n");
  PlanInput lines = TypedRows(folder_.path(), 1);
  lines.kind = PlanKind::kJsonLines;
  EXPECT_EQ(Formats(lines), R"({"encoding":"utf-8"})");
}

}  // namespace
}  // namespace parallelrun::plan
