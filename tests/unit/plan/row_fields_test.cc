#include "plan/columns/row_fields.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "plan/columns/block_types.h"
#include "plan/columns/sample.h"

namespace parallelrun::plan {
namespace {

using Table = std::vector<std::vector<std::string>>;

struct Read {
  Table rows;
  std::vector<uint64_t> lines;
  bool stray = false;
  bool operator==(const Read&) const = default;
};

// In parts of `part` bytes.
Read ReadAll(std::string_view text, size_t part, RowSyntax format = {}) {
  RowFields fields(format);
  Read read;
  std::string held;
  for (size_t at = 0; at < text.size(); at += part) {
    held += text.substr(at, part);
    const bool last = at + part >= text.size();
    while (fields.Next(held, last)) {
      read.rows.emplace_back(fields.fields().begin(), fields.fields().end());
      read.lines.push_back(fields.lines());
      read.stray = read.stray || fields.stray_quote();
    }
    held.erase(0, fields.used());
    fields.Forget();
  }
  return read;
}

TEST(RowFieldsTest, RowsAreTakenApartAsPandasDoes) {
  const std::string text =
      "a,b\r\n\"1,2\",\"say \"\"hi\"\"\"\n\n  \t\n\"two\nlines\",x\r\"\",\n 5,\"6\"7\"\nlast";
  const Table rows = {{"a", "b"}, {"1,2", "say \"hi\""}, {"two\nlines", "x"},
                      {"", ""},   {" 5", "67\""},        {"last"}};
  for (size_t part = 1; part <= text.size(); ++part) {
    const Read read = ReadAll(text, part);
    EXPECT_EQ(read.rows, rows) << part;
    EXPECT_EQ(read.lines, (std::vector<uint64_t>{0, 1, 4, 6, 7, 8})) << part;
    EXPECT_TRUE(read.stray) << part;
  }
}

TEST(RowFieldsTest, WithoutQuotedNewlinesEveryLineEndEndsARow) {
  EXPECT_EQ(ReadAll("\"a\n\"b\",c\n", 64, {',', false}).rows, (Table{{"a"}, {"b", "c"}}));
}

TEST(RowFieldsTest, CommentsAndEscapes) {
  const RowSyntax format{',', true, '#', '\\'};
  const std::string text =
      "# \"not\" a row\na,b#c\n  # a row\n\"x#y\",\\N\r\n\"say \\\"hi\\\"\",\\,\n#last";
  const Table rows = {{"a", "b"}, {"  "}, {"x#y", "N"}, {"say \"hi\"", ","}};
  for (size_t part = 1; part <= text.size(); ++part) {
    const Read read = ReadAll(text, part, format);
    EXPECT_EQ(read.rows, rows) << part;
    EXPECT_EQ(read.lines, (std::vector<uint64_t>{1, 2, 3, 4})) << part;
  }
}

TEST(RowFieldsTest, AnotherCharacterMayQuoteOrNone) {
  RowSyntax format;
  format.quote = '\'';
  EXPECT_EQ(ReadAll("'a,\n''b',\"c\nd\",'\"'\n", 64, format).rows,
            (Table{{"a,\n'b", "\"c"}, {"d\"", "\""}}));
  format.quote = 0;
  EXPECT_EQ(ReadAll("'a,\"b\nc\",\"\"d\n", 64, format).rows,
            (Table{{"'a", "\"b"}, {"c\"", "\"\"d"}}));
}

TEST(RowFieldsTest, ATabMaySeparate) {
  EXPECT_EQ(ReadAll("\t1\n\t\n", 64, {'\t', true}).rows, (Table{{"", "1"}, {"", ""}}));
}

TEST(RowFieldsTest, ADelimiterOfSeveralBytes) {
  RowSyntax format{Delimiter("||")};
  const std::string text = "a|||b||\n\"c||\"\"\"||\"d\"|e|\n||\n|\n\"f\"|||g\n||";
  const Table rows = {{"a", "|b", ""}, {"c||\"", "d|e|"}, {"", ""}, {"|"}, {"f", "|g"}, {"", ""}};
  for (size_t part = 1; part <= text.size(); ++part) {
    EXPECT_EQ(ReadAll(text, part, format).rows, rows) << part;
  }
  format.comment = '#';
  format.escape = '\\';
  const std::string marked = "#||\na\\||b||\\|||c#||\n\"\\\"||\"||d\n";
  const Table marked_rows = {{"a||b", "|", "c"}, {"\"||", "d"}};
  for (size_t part = 1; part <= marked.size(); ++part) {
    EXPECT_EQ(ReadAll(marked, part, format).rows, marked_rows) << part;
  }
}

TEST(RowFieldsTest, ALineOfBlanksWithADelimiterIsARow) {
  EXPECT_EQ(ReadAll("  \n \n\t\n   \n", 1, {Delimiter("  ")}).rows, (Table{{"", ""}, {"", " "}}));
  EXPECT_EQ(ReadAll(" \t\n\t \t|\n", 1, {Delimiter("\t|")}).rows, (Table{{"\t ", ""}}));
}

// Also where a field holds a part of it.
TEST(RowFieldsTest, ADelimiterOfSeveralBytesIsAsOneByte) {
  std::mt19937 random(9);
  for (int round = 0; round < 5000; ++round) {
    constexpr std::string_view kSome = "ab;;;;<<\n\"\" \t";
    std::string text;
    for (size_t n = random() % 60; n > 0; --n) text += kSome[random() % kSome.size()];
    const std::string_view several = random() % 2 == 0 ? "<>" : "<<>";
    std::string longer;
    for (const char c : text) longer += c == ';' ? std::string(several) : std::string(1, c);
    Table rows = ReadAll(longer, 1 + random() % 20, {Delimiter(several)}).rows;
    for (auto& row : rows) {
      for (std::string& field : row) {
        for (size_t at; (at = field.find(several)) != std::string::npos;) {
          field.replace(at, several.size(), ";");
        }
      }
    }
    ASSERT_EQ(rows, ReadAll(text, 64, {';'}).rows) << ::testing::PrintToString(longer);
  }
}

// Blocks of 64 bytes are looked at at once where they are there, else byte by byte; and of an open
// quote only what came since.
TEST(RowFieldsTest, HowMuchIsThereAtATimeDoesNotMatter) {
  std::mt19937 random(11);
  for (int round = 0; round < 1'000; ++round) {
    RowSyntax syntax;
    syntax.delimiter = ",;\t "[random() % 4];
    if (random() % 6 == 0) syntax.comment = '#';
    if (random() % 6 == 0) syntax.escape = '\\';
    syntax.quoted = random() % 6 != 0;
    syntax.quote = "\"\"\"'\0"[random() % 5];
    // Mostly of one kind, so that whole blocks are plain as well.
    constexpr std::string_view kSome = "abcdefghij0123456789,,;;\t \n\n\r\n\r\"\"'#\\";
    const std::string_view from = kSome.substr(random() % 20, 12 + random() % 24);
    std::string text;
    for (size_t n = random() % 500; n > 0; --n) {
      text += random() % 6 == 0 ? syntax.delimiter.front() : from[random() % from.size()];
      if (random() % 100 == 0) text.append(random() % 200, 'w');
    }
    const Read whole = ReadAll(text, text.size() + 1, syntax);
    for (const size_t part : {size_t{1}, 1 + random() % 200, size_t{64}}) {
      ASSERT_EQ(ReadAll(text, part, syntax), whole) << part << ::testing::PrintToString(text);
    }
  }
}

// --- blocks

BlockReading Reading(std::string_view block, BlockReading::From from, size_t columns) {
  static const MissingWords missing;
  const bool row = from == BlockReading::From::kRow;
  BlockReading reading({}, missing, columns, {"in/a.csv", 100, row ? 5U : 0U, row, true}, from);
  for (size_t at = 0; at < block.size(); at += 7) reading.Feed(block.substr(at, 7));
  reading.Finish();
  return reading;
}

TEST(BlockTypesTest, AFieldThatAShortRowLacksIsMissing) {
  const BlockReading reading = Reading("1,2\n3\n", BlockReading::From::kRow, 2);
  const SeenColumn& column = reading.seen().columns[1];
  EXPECT_EQ(reading.seen().counts.rows, 2U);
  EXPECT_EQ(column.bits(), field::kInteger | field::kMissing);
  EXPECT_EQ(column.FirstOf(field::kMissing).place.line, 6U);
  EXPECT_EQ(column.FirstOf(field::kMissing).place.offset, 104U);
}

// A block that does not begin with a row: its first row is cut, and it may begin within quotes.
void ExpectChosen(std::string_view block, bool within, uint64_t rows) {
  const BlockReading outside = Reading(block, BlockReading::From::kOutsideQuotes, 2);
  const BlockReading inside = Reading(block, BlockReading::From::kWithinQuotes, 2);
  EXPECT_EQ(Choose(outside, inside), within ? &inside : &outside) << block;
  EXPECT_EQ((within ? inside : outside).seen().counts.rows, rows) << block;
}

TEST(BlockTypesTest, TheStateOfQuotesIsTheOneThatFits) {
  ExpectChosen("3,4\n1,2\n5,6\n", false, 2);
  ExpectChosen("2\n\"a\nb\",2\n\"c,d\",3\n\"e\",4\n", false, 3);
  ExpectChosen("some text, more\nof it\",7\n\"x,\ny\",8\n\"z\",9\n", true, 2);
  ExpectChosen("text\nwith, commas\n\",1\n2,3\n4,5\n", true, 2);
}

TEST(BlockTypesTest, AReadingThatIsLeftEarlyIsNotTheOneThatFits) {
  std::mt19937 random(5);
  int certain = 0;
  for (int round = 0; round < 2000; ++round) {
    std::string block = random() % 2 == 0 ? "text, more\n\"," : "";
    for (size_t n = random() % 30; n > 0; --n) {
      constexpr std::string_view kRows[] = {"1,2\n", "\"a\nb\",2\n", "\"c,d\",\"x\"\n", "1\n",
                                            "x\"y,z\n"};
      block += kRows[random() % 8 < 5 ? random() % 3 : random() % 5];
    }
    const BlockReading outside = Reading(block, BlockReading::From::kOutsideQuotes, 2);
    const BlockReading within = Reading(block, BlockReading::From::kWithinQuotes, 2);
    static const MissingWords missing;
    BlockReading left({}, missing, 2, {"in/a.csv", 100, 0, false, true},
                      BlockReading::From::kWithinQuotes);
    for (size_t at = 0; at < block.size(); at += 5) {
      left.Feed(std::string_view(block).substr(at, 5));
      if (!IsCertain(outside, left)) continue;
      ++certain;
      EXPECT_EQ(Choose(outside, left), &outside) << block;
      EXPECT_EQ(Choose(outside, within), &outside) << block;
      break;
    }
  }
  EXPECT_GT(certain, 100);
}

// --- sample

TEST(SampleTest, EverythingIsReadUpToTheLimit) {
  const Sample sample = PlanSample({10, 0, 30}, true, 40);
  EXPECT_TRUE(sample.all);
  ASSERT_EQ(sample.files.size(), 3U);
  EXPECT_EQ(sample.files[2].blocks, (std::vector<SampleBlock>{{0, 30}}));
  EXPECT_FALSE(PlanSample({10, 30}, false, 40).all);
}

TEST(SampleTest, OfLargeFilesTheHeadTheMiddleAndTheEnd) {
  const Sample sample = PlanSample({1000, 20}, true, 120);
  EXPECT_FALSE(sample.all);
  ASSERT_EQ(sample.files.size(), 2U);
  EXPECT_EQ(sample.files[0].blocks, (std::vector<SampleBlock>{{0, 20}, {490, 510}, {980, 1000}}));
  EXPECT_EQ(sample.files[1].blocks, (std::vector<SampleBlock>{{0, 20}}));
  EXPECT_EQ(sample.bytes, 80U);
}

TEST(SampleTest, AHundredFilesWithTheFirstAndTheLast) {
  const Sample sample = PlanSample(std::vector<uint64_t>(10'000, 1'000'000), false, 1'000'000);
  ASSERT_EQ(sample.files.size(), 100U);
  EXPECT_EQ(sample.files.front().file, 0U);
  EXPECT_EQ(sample.files[1].file, 101U);
  EXPECT_EQ(sample.files.back().file, 9'999U);
}

}  // namespace
}  // namespace parallelrun::plan
