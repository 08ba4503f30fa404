#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <random>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "plan/csv_splitter.h"
#include "tests/support/disk_store.h"
#include "tests/unit/plan/folder.h"

namespace parallelrun::plan {
namespace {

using ::testing::HasSubstr;
using Kernel = RowScanner::Kernel;

struct Cut {
  uint64_t offset, length, rows;
  bool operator==(const Cut&) const = default;
};
void PrintTo(const Cut& c, std::ostream* out) {
  *out << c.offset << "+" << c.length << " rows " << c.rows;
}

// The rules of row_scanner.h, written down as simply as possible.
std::vector<Cut> Naive(const std::string& text, std::string_view delimiter, bool quoted,
                       uint64_t size) {
  std::vector<Cut> cuts;
  Cut cut{0, 0, 0};
  bool in_quotes = false, field_start = true, after_quote = false, content = false, blank = true;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool quote = quoted && c == '"';
    if (in_quotes && !quote) continue;
    if (!in_quotes && (c == '\n' || c == '\r')) {
      cut.rows += content && !blank;
      if (c == '\r' && i + 1 < text.size() && text[i + 1] == '\n') ++i;
      field_start = blank = true;
      after_quote = content = false;
      if (cut.rows > 0 && i + 1 - cut.offset >= size) {
        cuts.push_back({cut.offset, i + 1 - cut.offset, cut.rows});
        cut = {i + 1, 0, 0};
      }
      continue;
    }
    content = true;
    const bool delimits = !in_quotes && text.compare(i, delimiter.size(), delimiter) == 0;
    if (delimits) i += delimiter.size() - 1;
    if (delimits || (c != ' ' && c != '\t')) blank = false;
    if (in_quotes) {
      in_quotes = false;
      after_quote = true;
    } else if (quote && (field_start || after_quote)) {
      in_quotes = true;
      field_start = after_quote = false;
    } else {
      field_start = delimits;
      after_quote = false;
    }
  }
  cut.rows += content && !blank;
  if (cut.rows > 0) cuts.push_back({cut.offset, text.size() - cut.offset, cut.rows});
  return cuts;
}

std::vector<Cut> Split(const std::string& path, const CsvFormat& format, uint64_t size,
                       Kernel kernel = Kernel::kBest, uint64_t from = 0) {
  auto splitter = CsvSplitter::Open(DiskStore(), NameOnDisk(path), format, kernel);
  EXPECT_TRUE(splitter.ok());
  if (from > 0) (*splitter)->Seek(from);
  std::vector<Cut> cuts;
  while (true) {
    const auto slice = (*splitter)->Next(size);
    EXPECT_TRUE(slice.ok());
    if (!*slice) return cuts;
    cuts.push_back({(*slice)->offset, (*slice)->length, (*slice)->rows});
  }
}

TEST(PlanSplitterTest, Table) {
  struct Case {
    const char* text;
    uint64_t size;
    std::vector<Cut> cuts;
  };
  const Case cases[] = {
      {"", 1, {}},
      {"\n\n \n", 1, {}},
      {"a", 1, {{0, 1, 1}}},
      {"a\n", 1, {{0, 2, 1}}},
      {"a\nb", 1, {{0, 2, 1}, {2, 1, 1}}},
      {"a\nb\n", 3, {{0, 4, 2}}},
      {"a\nb\n", 2, {{0, 2, 1}, {2, 2, 1}}},
      {"a\r\nb\r\n", 1, {{0, 3, 1}, {3, 3, 1}}},
      {"a\r\nb\r\n", 2, {{0, 3, 1}, {3, 3, 1}}},
      {"a\rb\rc", 1, {{0, 2, 1}, {2, 2, 1}, {4, 1, 1}}},
      {"a\n\n\nb\n", 1, {{0, 2, 1}, {2, 4, 1}}},
      {"a\n\n \t\n\n", 1, {{0, 2, 1}}},
      {"\"a\nb\"\nc\n", 1, {{0, 6, 1}, {6, 2, 1}}},
      {"\"a\"\"\n\"\nc\n", 1, {{0, 7, 1}, {7, 2, 1}}},
      {"\"\"\n\"\"\n", 1, {{0, 3, 1}, {3, 3, 1}}},
      {"5\" pipe,1\n6\" pipe,2\n", 1, {{0, 10, 1}, {10, 10, 1}}},
      {"a, \"x\ny\"\n", 1, {{0, 6, 1}, {6, 3, 1}}},  // a blank before the quote: text
      {" \"x\ny\"\n", 1, {{0, 4, 1}, {4, 3, 1}}},
      {"\"a\"b\"c\n", 1, {{0, 7, 1}}},
      {",\n,\n", 1, {{0, 2, 1}, {2, 2, 1}}},
      {"\xEF\xBB\xBF"
       "a\nb\n",
       1,
       {{3, 2, 1}, {5, 2, 1}}},
      {"\xEF\xBB\xBF", 1, {}},
  };
  for (const Case& c : cases) {
    PlanFolder folder;
    const std::string path = folder.Write("x.csv", c.text);
    for (const Kernel kernel : {Kernel::kBest, Kernel::kBytes}) {
      EXPECT_EQ(Split(path, {}, c.size, kernel), c.cuts) << ::testing::PrintToString(c.text);
    }
  }
}

TEST(PlanSplitterTest, WithoutQuotedNewlinesEveryLineIsARow) {
  PlanFolder folder;
  CsvFormat format;
  format.quoted_newlines = false;
  EXPECT_EQ(Split(folder.Write("x.csv", "\"a\n\"b\nc\n"), format, 1),
            (std::vector<Cut>{{0, 3, 1}, {3, 3, 1}, {6, 2, 1}}));
}

TEST(PlanSplitterTest, AnotherCharacterMayQuoteOrNone) {
  PlanFolder folder;
  std::mt19937 random(11);
  constexpr std::string_view kBytes = "abcdefgh,,\n\r\"\"''";
  for (int round = 0; round < 300; ++round) {
    std::string text;
    for (size_t n = random() % 300; n > 0; --n) text += kBytes[random() % kBytes.size()];
    std::string swapped = text;
    for (char& c : swapped) c = c == '"' ? '\'' : c == '\'' ? '"' : c;
    const uint64_t size = 1 + random() % 100;
    for (const Kernel kernel : {Kernel::kBest, Kernel::kBytes}) {
      CsvFormat format;
      format.quote = '\'';
      ASSERT_EQ(Split(folder.Write("x.csv", swapped), format, size, kernel),
                Naive(text, ",", true, size))
          << ::testing::PrintToString(swapped);
      format.quote = 0;
      ASSERT_EQ(Split(folder.Write("x.csv", text), format, size, kernel),
                Naive(text, ",", false, size))
          << ::testing::PrintToString(text);
    }
  }
}

TEST(PlanSplitterTest, WhatQuotesIsNoDelimiter) {
  CsvFormat format;
  format.quote = ';';
  EXPECT_TRUE(CheckCsvFormat(format).ok());
  format.delimiter = ";";
  EXPECT_FALSE(CheckCsvFormat(format).ok());
  format = {.delimiter = "<|>", .comment = '|'};
  EXPECT_THAT(CheckCsvFormat(format).error().message,
              HasSubstr("holds the character that tabular.comment is"));
  format = {.delimiter = "<|>", .escape = '>'};
  EXPECT_THAT(CheckCsvFormat(format).error().message, HasSubstr("tabular.escape is"));
  format = {.delimiter = "<|>", .quote = '<'};
  EXPECT_THAT(CheckCsvFormat(format).error().message, HasSubstr("tabular.quote is"));
  format = {};
  format.quote = '|';
  format.encoding = "gbk";
  EXPECT_THAT(CheckCsvFormat(format).error().message,
              HasSubstr("tabular.quote \"|\" may be a part of a character in gbk"));
}

TEST(PlanSplitterTest, MarkIsTextInOtherEncodings) {
  PlanFolder folder;
  CsvFormat format;
  format.encoding = "latin-1";
  EXPECT_EQ(Split(folder.Write("x.csv",
                               "\xEF\xBB\xBF"
                               "a\n"),
                  format, 1),
            (std::vector<Cut>{{0, 5, 1}}));
}

TEST(PlanSplitterTest, Header) {
  struct Case {
    const char* text;
    const char* header;
    uint64_t next;
  };
  const Case cases[] = {
      {"a,b\n1,2\n", "a,b\n", 4},
      {"a,b\r\n1,2\r\n", "a,b\r\n", 5},
      {"a,b\r1,2\r", "a,b\r", 4},
      {"\xEF\xBB\xBF"
       "a,b\n1,2\n",
       "a,b\n", 7},
      {"\n\r\na,b\n1,2\n", "a,b\n", 7},
      {"\"a\nx\",b\n1,2\n", "\"a\nx\",b\n", 8},
      {"a,b\n", "a,b\n", 0},
      {"a,b", "a,b\n", 0},
      {"", "", 0},
      {"\n", "", 0},
  };
  for (const Case& c : cases) {
    PlanFolder folder;
    auto splitter = CsvSplitter::Open(DiskStore(), NameOnDisk(folder.Write("x.csv", c.text)), {});
    ASSERT_TRUE(splitter.ok());
    EXPECT_EQ((*splitter)->TakeHeader().value(), c.header);
    const auto slice = (*splitter)->Next(1).value();
    EXPECT_EQ(slice ? slice->offset : 0, c.next) << c.text;
  }
}

TEST(PlanSplitterTest, RefusesAHeaderWithoutEnd) {
  PlanFolder folder;
  auto splitter = CsvSplitter::Open(
      DiskStore(), NameOnDisk(folder.Write("x.csv", "\"a" + std::string(3 * 1024 * 1024, '\n'))),
      {});
  const auto header = (*splitter)->TakeHeader();
  ASSERT_FALSE(header.ok());
  EXPECT_THAT(header.error().message, HasSubstr("tabular.header to None"));
}

// What the splitter says of a file whose fields may have so many bytes; "" when it cuts it.
std::string Refusal(const std::string& path, uint64_t most, Kernel kernel) {
  CsvFormat format;
  format.max_field_size = most;
  auto splitter = CsvSplitter::Open(DiskStore(), NameOnDisk(path), format, kernel);
  EXPECT_TRUE(splitter.ok());
  while (true) {
    const auto slice = (*splitter)->Next(1000);
    if (!slice.ok()) return slice.error().message;
    if (!*slice) return "";
  }
}

TEST(PlanSplitterTest, AFieldThatIsTooLongIsToldWithItsLine) {
  PlanFolder folder;
  for (const uint64_t most : {uint64_t{5}, uint64_t{64}, uint64_t{100}, uint64_t{300'000}}) {
    for (const size_t front : {0, 1, 61, 100'000}) {
      std::string before;
      for (size_t i = 0; i < front; ++i) before += i % 2 == 0 ? "a,\"b\"\r\n" : "cd,\n";
      for (const char* kind : {"x", ",x", "\"\n", ",\"\n", "x,", "x\n"}) {
        const std::string text(kind);
        const bool quoted = text.find('"') != std::string::npos;
        const bool inside = text[0] == ',';
        for (const bool over : {false, true}) {
          // The field itself: a run of one byte, between quotes where it holds line ends.
          const size_t size = static_cast<size_t>(most) + (over ? 1 : 0);
          std::string field(size, quoted ? '\n' : 'x');
          if (quoted) field.front() = field.back() = '"';
          std::string whole = before + (inside ? "," : "") + field;
          if (text.back() == ',') whole += ",";
          whole += "\nlast\n";
          const std::string path = folder.Write("x.csv", whole);
          for (const Kernel kernel : {Kernel::kBest, Kernel::kBytes}) {
            const std::string said = Refusal(path, most, kernel);
            SCOPED_TRACE(::testing::Message() << most << " " << front << " " << kind << over);
            if (!over) {
              EXPECT_EQ(said, "");
            } else {
              EXPECT_THAT(said, HasSubstr("x.csv:" + std::to_string(front + 1) + ": a field is "));
            }
          }
        }
      }
    }
  }
}

TEST(PlanSplitterTest, AQuoteThatIsOpenAtTheEndIsToldWithItsLine) {
  PlanFolder folder;
  const std::string front = "a,b\r\n1,2\n";
  for (const char* rest : {"3,\"", "3,\"x", "\"x\ny\nz\n", "3,\"x\"\"", "3,\"x\"\"\n"}) {
    const std::string path = folder.Write("x.csv", front + rest);
    for (const Kernel kernel : {Kernel::kBest, Kernel::kBytes}) {
      EXPECT_THAT(Refusal(path, 1000, kernel), HasSubstr("x.csv:3: the quote that")) << rest;
    }
  }
  for (const char* rest : {"3,\"x\"", "3,\"x\"\n", "3,x\"", "\"\""}) {
    EXPECT_EQ(Refusal(folder.Write("x.csv", front + rest), 1000, Kernel::kBest), "") << rest;
  }
}

TEST(PlanSplitterTest, Formats) {
  const auto check = [](const char* delimiter, const char* encoding) {
    return CheckCsvFormat({delimiter, encoding, true});
  };
  for (const char* encoding : {"utf-8", "UTF8", "utf_8_sig", "ascii", "latin-1", "Latin1",
                               "ISO-8859-15", "cp1252", "windows-1252", "shift_jis", "GBK"}) {
    EXPECT_TRUE(check(",", encoding).ok()) << encoding;
  }
  for (const char* encoding :
       {"utf-16", "UTF-16LE", "utf_32", "utf-7", "cp037", "iso2022_jp", ""}) {
    const Status status = check(",", encoding);
    ASSERT_FALSE(status.ok()) << encoding;
    EXPECT_EQ(status.error().code, Code::kInvalid);
    EXPECT_THAT(status.error().message, HasSubstr("convert the files to utf-8"));
  }
  for (const char* delimiter : {"", "\"", "\n", "\r", "|\"|", "a\nb", "\xC3", "123456789",
                                "\xC3\xA4\xC3\xA4\xC3\xA4\xC3\xA4!"}) {
    EXPECT_THAT(check(delimiter, "utf-8").error().message, HasSubstr("must be 1 to 8 bytes"))
        << delimiter;
  }
  for (const char* delimiter : {"\t", "||", ", ", "12345678", "\xC3\xA4"}) {
    EXPECT_TRUE(check(delimiter, "utf-8").ok()) << delimiter;
  }
  EXPECT_FALSE(CheckCsvFormat({std::string("|\0", 2), "utf-8", true}).ok());
  EXPECT_THAT(check("\xC3\xA4", "latin-1").error().message,
              HasSubstr("has other bytes in latin-1"));
  EXPECT_THAT(check("\xC3\xA4", "gbk").error().message, HasSubstr("iconv -f gbk -t utf-8"));
  // The second byte of a character may be 0x7C in these.
  for (const char* encoding : {"shift_jis", "GBK", "gb18030", "big5hkscs", "cp932"}) {
    EXPECT_THAT(check("|", encoding).error().message, HasSubstr("may be a part of a character"));
    EXPECT_THAT(check("|;", encoding).error().message, HasSubstr("may be a part of a character"));
    EXPECT_TRUE(check(";", encoding).ok()) << encoding;
    EXPECT_TRUE(check(";|", encoding).ok()) << encoding;
  }
  EXPECT_FALSE(check("5", "gb18030").ok());
  EXPECT_TRUE(check("|", "euc-jp").ok());
}

std::string RandomText(std::mt19937& random, const std::string& letters, size_t size) {
  std::string text;
  while (text.size() < size) {
    // Runs make whole blocks without a given byte likely.
    text.append(random() % 8 == 0 ? random() % 100 : 1, letters[random() % letters.size()]);
  }
  return text;
}

// Of a text that arrives in pieces, as from a file.
std::vector<Cut> ScanInPieces(std::string_view text, const RowSyntax& syntax, Kernel kernel,
                              uint64_t size, const std::function<size_t()>& piece_size) {
  RowScanner scanner(syntax, kernel);
  std::vector<Cut> cuts;
  Cut cut{0, 0, 0};
  size_t pos = 0;
  while (pos < text.size()) {
    const std::string_view piece = text.substr(pos, piece_size());
    const uint64_t done = pos - cut.offset;
    const auto step = scanner.Scan(piece, size > done ? size - done : 0, cut.rows);
    pos += step.used;
    if (step.too_long) {
      cuts.push_back({pos, scanner.field(), cut.rows});
      return cuts;
    }
    if (!step.cut) continue;
    if (text[pos - 1] == '\r' && pos < text.size() && text[pos] == '\n') ++pos;
    cuts.push_back({cut.offset, pos - cut.offset, cut.rows});
    cut = {pos, 0, 0};
  }
  scanner.Finish(cut.rows);
  if (cut.rows > 0) cuts.push_back({cut.offset, pos - cut.offset, cut.rows});
  return cuts;
}

TEST(PlanSplitterTest, KernelsAgreeWithEachOtherAndWithTheRules) {
  std::mt19937 random(11);
  const std::string alphabets[] = {
      "ab,\n",       "ab,\"\n",       "abcdefgh,,\"\"\n\r",
      "a \t,\"\n\r", "abcdefgh,\n  ", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa,\n\"",
      "\"\n"};
  // Of several bytes some that begin again within themselves, and some of blanks.
  constexpr std::string_view kDelimiters[] = {",",   "\t",       " ",      "a",   ",,",
                                              ",,a", ",a,",      "aa",     ", ",  "  ",
                                              "\t ", "abcdefgh", ",,a,,b", " \ta"};
  for (int round = 0; round < 6000; ++round) {
    const std::string text =
        RandomText(random, alphabets[static_cast<size_t>(round) % 7], random() % 2000);
    const std::string_view delimiter = kDelimiters[random() % std::size(kDelimiters)];
    const RowSyntax format{Delimiter(delimiter), random() % 4 != 0};
    const uint64_t size = 1 + random() % (random() % 2 == 0 ? 40 : 1000);
    const std::vector<Cut> expected = Naive(text, delimiter, format.quoted, size);
    const size_t longest = random() % 2 == 0 ? 3 : 300;
    for (const Kernel kernel : {Kernel::kBest, Kernel::kBytes}) {
      const std::vector<Cut> cuts =
          ScanInPieces(text, format, kernel, size, [&] { return 1 + random() % longest; });
      ASSERT_EQ(cuts, expected) << "round " << round << " kernel " << static_cast<int>(kernel)
                                << " size " << size << " by " << ::testing::PrintToString(delimiter)
                                << " of " << ::testing::PrintToString(text);
    }
  }
}

// Each block by itself is left to the bytes where it holds a mark, also one that is text there.
TEST(PlanSplitterTest, KernelsAgreeOfTextsWithCommentsAndEscapes) {
  std::mt19937 random(12);
  const std::string alphabets[] = {"ab,#\\\n",
                                   "abcdefgh,,\"\"\n\r#",
                                   "abcdefgh,,\"\"\n\r\\",
                                   "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa,\n\"#\\",
                                   "a \t,\"\n#\\",
                                   "aaaaaaaaaaaaaaaa\"\"\"\\\n"};
  for (int round = 0; round < 6000; ++round) {
    const std::string text =
        RandomText(random, alphabets[static_cast<size_t>(round) % 6], random() % 2000);
    RowSyntax syntax;
    syntax.quoted = random() % 4 != 0;
    if (random() % 3 != 0) syntax.comment = '#';
    if (random() % 3 != 0) syntax.escape = '\\';
    if (random() % 4 == 0) syntax.max_field = 64 + random() % 100;
    syntax.fronts = random() % 2 == 0;
    const uint64_t size = 1 + random() % (random() % 2 == 0 ? 40 : 1000);
    const size_t longest = random() % 2 == 0 ? 3 : 300;
    const auto of = [&](Kernel kernel, const std::function<size_t()>& piece_size) {
      return ScanInPieces(text, syntax, kernel, size, piece_size);
    };
    const std::vector<Cut> expected = of(Kernel::kBytes, [] { return 1; });
    const auto some = [&] { return 1 + random() % longest; };
    const auto all = [&] { return text.size(); };
    // Where a field is too long both say so, of a quoted one at another byte of it.
    const auto same = [&](const std::vector<Cut>& cuts) {
      if (syntax.max_field == kAnyField) return cuts == expected;
      return cuts.size() == expected.size() &&
             std::equal(cuts.begin(), cuts.end() - (cuts.empty() ? 0 : 1), expected.begin());
    };
    for (const Kernel kernel : {Kernel::kBest, Kernel::kBytes}) {
      for (const std::vector<Cut>& cuts : {of(kernel, some), of(kernel, all)}) {
        ASSERT_TRUE(same(cuts)) << "round " << round << " kernel " << static_cast<int>(kernel)
                                << " size " << size << " comment " << int{syntax.comment}
                                << " escape " << int{syntax.escape} << " quoted " << syntax.quoted
                                << " of " << ::testing::PrintToString(text);
      }
    }
  }
}

TEST(PlanSplitterTest, FilesLargerThanTheBuffer) {
  std::mt19937 random(5);
  PlanFolder folder;
  for (const char* letters : {"abcd,\"\n\r", "abcdefghij,\n"}) {
    const std::string text = RandomText(random, letters, 1'000'000);
    const std::string path = folder.Write("x.csv", text);
    for (const uint64_t size : {1000U, 262'144U, 300'000U, 5'000'000U}) {
      const std::vector<Cut> expected = Naive(text, ",", true, size);
      for (const Kernel kernel : {Kernel::kBest, Kernel::kBytes}) {
        ASSERT_EQ(Split(path, {}, size, kernel), expected);
      }
      for (size_t i = 0; i < expected.size(); i += 1 + expected.size() / 10) {
        const std::vector<Cut> rest(expected.begin() + static_cast<ptrdiff_t>(i), expected.end());
        ASSERT_EQ(Split(path, {}, size, Kernel::kBest, rest[0].offset), rest);
      }
    }
  }
}

// Behind the delimiter a quote opens a field; behind a part of one it is text.
TEST(PlanSplitterTest, ADelimiterMayLieAcrossTwoBuffers) {
  constexpr size_t kBuffer = 256 * 1024;
  PlanFolder folder;
  CsvFormat format;
  format.delimiter = "<||>";
  for (size_t before = 0; before <= format.delimiter.size() + 1; ++before) {
    for (const char* row : {"<||>\"a\nb\"\n", "<|>\"a\nb\"\n", "\"c\"<||>\"a\nb\"\n"}) {
      std::string text = "x\n";
      text.resize(kBuffer - before - 1, 'y');
      text += "\n";
      text += row;
      const std::string path = folder.Write("x.csv", text);
      for (const uint64_t size : {uint64_t{1}, uint64_t{kBuffer}}) {
        ASSERT_EQ(Split(path, format, size), Naive(text, "<||>", true, size)) << before << row;
      }
      auto splitter = CsvSplitter::Open(DiskStore(), NameOnDisk(path), format);
      (*splitter)->Seek(kBuffer - before);
      EXPECT_EQ((*splitter)->PeekRow().value(),
                std::string_view(row).substr(0, row[2] == '>' ? 6 : std::string::npos));
    }
  }
}

TEST(PlanSplitterTest, ALongDelimiterIsNoPartOfAField) {
  PlanFolder folder;
  CsvFormat format;
  format.delimiter = "||";
  format.max_field_size = 5;
  const auto refusal = [&](const std::string& text) {
    auto splitter = CsvSplitter::Open(DiskStore(), NameOnDisk(folder.Write("x.csv", text)), format);
    const auto slice = (*splitter)->Next(1000);
    return slice.ok() ? "" : slice.error().message;
  };
  for (const char* good : {"abcde||abcde\n", "\"abc\"||\"a||\"\n", "abcd|||abcd", "|||||a\n"}) {
    EXPECT_EQ(refusal(good), "") << good;
  }
  for (const char* bad : {"1\nabcdef||\n", "1\nabcde|\n", "1\nabcde|a\n", "1\na||\"abcd\"\n"}) {
    EXPECT_THAT(refusal(bad), HasSubstr("x.csv:2: a field is longer than 5 bytes")) << bad;
  }
}

TEST(PlanSplitterTest, AScanEndsWhenItsJobDoes) {
  PlanFolder folder;
  const std::string path = folder.Write("x.csv", std::string(1'000'000, 'a'));
  std::stop_source job;
  CsvFormat format;
  format.stop = job.get_token();
  const auto splitter = CsvSplitter::Open(DiskStore(), NameOnDisk(path), format);
  ASSERT_TRUE(splitter.ok());
  job.request_stop();
  const auto slice = (*splitter)->Next(1 << 30);
  ASSERT_FALSE(slice.ok());
  EXPECT_EQ(slice.error().code, Code::kUnavailable);
  EXPECT_THAT(slice.error().message, HasSubstr("x.csv is not read to its end"));
}

}  // namespace
}  // namespace parallelrun::plan
