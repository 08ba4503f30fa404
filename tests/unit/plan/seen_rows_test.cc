#include "plan/columns/seen_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "plan/columns/block_types.h"

namespace parallelrun::plan {
namespace {

using From = BlockReading::From;

constexpr size_t kColumns = 3;

BlockReading Block(std::string_view text, BlockPlace place, From from = From::kRow) {
  static const MissingWords missing;
  BlockReading reading({}, missing, kColumns, std::move(place), from,
                       {.any = from == From::kRow, .utf8 = true});
  reading.Feed(text);
  reading.Finish();
  return reading;
}

// All that was seen, as text.
std::string Told(const SeenRows& seen) {
  std::string text = std::to_string(seen.counts.rows) + " rows, " +
                     std::to_string(seen.counts.wide) + " wide, " +
                     std::to_string(seen.counts.few) + " short\n";
  const auto tell = [&](const FieldPlace& place) {
    text +=
        " " + place.file + ":" + std::to_string(place.line) + "+" + std::to_string(place.offset);
  };
  for (const SeenColumn& column : seen.columns) {
    // What comes behind a word is no longer looked at where it is read in one, and tells people
    // more of it where it is not; the type is the same.
    if (column.settled()) {
      text += "text\n";
      continue;
    }
    for (FieldBits bit = 1; bit != 0; bit = static_cast<FieldBits>(bit << 1)) {
      if ((column.bits() & bit) == 0) continue;
      text += std::to_string(bit) + " \"" + column.FirstOf(bit).text + "\"";
      tell(column.FirstOf(bit).place);
      text += "; ";
    }
    text += "\n";
  }
  if (seen.bad_row) {
    text += "bad: " + seen.bad_row->what;
    tell(seen.bad_row->place);
  }
  return text + (seen.all ? "" : " not all");
}

// What the parts of a file say, each read for itself, in the order of the file.
std::string InParts(const std::vector<std::string>& parts) {
  SeenRows seen;
  seen.columns.resize(kColumns);
  std::string before;
  for (size_t i = 0; i < parts.size(); ++i) {
    const uint64_t line = 1 + CountLineEnds(before);
    seen.Append(
        Block(parts[i], {"a.csv", before.size(), line, true, i + 1 == parts.size()}).seen());
    before += parts[i];
  }
  return Told(seen);
}

std::string InOne(const std::vector<std::string>& parts) {
  std::string all;
  for (const std::string& part : parts) all += part;
  return Told(Block(all, {"a.csv", 0, 1, true, true}).seen());
}

TEST(SeenRowsTest, PartsOfAFileSayWhatTheWholeSays) {
  const std::vector<std::vector<std::string>> cases = {
      {"1,2,3\n4,5,6\n", "7,8,9\n"},
      {"", "1,2,3\n", "", "", "4,5,6\n", ""},
      {"", ""},
      {"\n\n", "1,2,3\n", "\n \n"},
      // A column that is suspect in the last part only, and with another reason in each.
      {"1,2,3\n", "4,5,6\n", "7,008,9\n"},
      {"1,2.5,3\n", "4,,6\n", "7,+8,9\n"},
      {"True,2,\n", "False,9007199254740993,\n", "1,,x\n"},
      {"1,2,x\n", "1,x,3\n", "x,2,3\n"},
      // Ragged rows: a field that a row lacks is missing, one too many is told.
      {"1,2,3\n4\n", "5,6\n", "7,8,9,10\n", "1\n"},
      {"1,2,3\n", "4,5\n6,7,8,9\n1,2,3,4\n"},
      // Quotes that hold line ends, within a part and at its end.
      {"1,\"a\nb\",3\n", "\"4\n\",5,6\n", "7,8,\"9\r\n\"\n"},
      {"1,\"\"\"\n\",3\r\n", "\"4\"\"\",\"5\",6\r\n", "7,8,9"},
      {"1,caf\xC3\xA9,3\n", "1,caf\xE9,3\n", "1,2,3,4\n"},
  };
  for (const std::vector<std::string>& parts : cases) {
    EXPECT_EQ(InParts(parts), InOne(parts)) << testing::PrintToString(parts);
  }
}

// Whoever appends a to b, and both to c, says what is said of (a and b) and c.
TEST(SeenRowsTest, ItDoesNotMatterWhichAreAppendedFirst) {
  const std::vector<std::string> parts = {"1,x,\n2\n", "", "03,2,True\n1,2,3,4\n", "+1,,0.5\n"};
  std::vector<SeenRows> seen;
  for (const std::string& part : parts) {
    seen.push_back(Block(part, {"a.csv", seen.size() * 100, seen.size(), true, true}).seen());
  }
  SeenRows in_turn = seen[0];
  for (size_t i = 1; i < seen.size(); ++i) in_turn.Append(seen[i]);
  SeenRows last = seen[2];
  last.Append(seen[3]);
  SeenRows by_two = seen[0];
  by_two.Append(seen[1]);
  by_two.Append(last);
  EXPECT_EQ(Told(by_two), Told(in_turn));
}

// A block that ends within quotes leaves that row to nobody, as the one behind it begins within.
TEST(SeenRowsTest, ARowThatLiesAcrossTheEndOfABlockIsLeftOut) {
  const std::string before = "1,\"a\",3\n4,\"b\",6\n";
  const std::string across_begins = "7,\"so much,\nand ";
  const std::string across_ends = "more, of it\n\",x\n";
  const std::string behind = "10,\"c,\nd\",12\n13,\"e\",0.5\n";
  const uint64_t offset = before.size() + across_begins.size();
  SeenRows seen = Block(before + across_begins, {"a.csv", 0, 1, true, false}).seen();
  const BlockPlace place{"a.csv", offset, 0, false, true};
  const BlockReading outside = Block(across_ends + behind, place, From::kOutsideQuotes);
  const BlockReading within = Block(across_ends + behind, place, From::kWithinQuotes);
  ASSERT_EQ(Choose(outside, within), &within);
  seen.Append(within.seen());

  SeenRows expected = Block(before, {"a.csv", 0, 1, true, true}).seen();
  expected.Append(Block(behind, {"a.csv", offset + across_ends.size(), 0, true, true}).seen());
  EXPECT_EQ(Told(seen), Told(expected));
  EXPECT_EQ(seen.columns[2].bits(), field::kInteger | field::kFraction) << "x is of no row";
}

TEST(SeenRowsTest, ColumnsInAnotherOrderAreAppendedToTheirOwn) {
  SeenRows seen = Block("1,x,True\n", {"a.csv", 0, 1, true, true}).seen();
  const SeenRows other = Block("y,False,2\n", {"b.csv", 0, 1, true, true}).seen();
  seen.Append(other, {1, 2, 0});
  EXPECT_EQ(seen.columns[0].bits(), field::kInteger);
  EXPECT_EQ(seen.columns[1].bits(), field::kWord);
  EXPECT_EQ(seen.columns[2].bits(), field::kBoolean);
}

TEST(SeenRowsTest, WhatIsLeftOutOfOneIsLeftOutOfAll) {
  std::string open = "1,2,\"";
  open.resize(9'000'000, 'x');
  SeenRows seen = Block("1,2,3\n", {"a.csv", 0, 1, true, true}).seen();
  seen.Append(Block(open, {"a.csv", 6, 2, true, true}).seen());
  EXPECT_FALSE(seen.all);
  EXPECT_EQ(seen.counts.rows, 1U);
}

}  // namespace
}  // namespace parallelrun::plan
