#include "output/csv_join.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace parallelrun::output {
namespace {

using testing::HasSubstr;

struct Joint {
  Status status;
  std::string text;
};

// The results, each of one or several parts, as one file; up to the first error.
Joint Joined(const std::vector<std::string>& columns,
             const std::vector<std::vector<std::string>>& results) {
  CsvJoin join(columns);
  Joint joined;
  const RowFormat::Put put = [&joined](std::string_view bytes) {
    joined.text += bytes;
    return Status();
  };
  joined.status = join.Begin(put);
  for (const std::vector<std::string>& parts : results) {
    for (size_t i = 0; i < parts.size() && joined.status.ok(); ++i) {
      joined.status = join.Add(parts[i], i == 0, put);
    }
  }
  if (joined.status.ok()) joined.status = join.End(put);
  return joined;
}

std::string Text(const std::vector<std::string>& columns,
                 const std::vector<std::vector<std::string>>& results) {
  const Joint joined = Joined(columns, results);
  EXPECT_TRUE(joined.status.ok()) << joined.status.error().message;
  return joined.text;
}

TEST(CsvJoin, TheHeaderStandsOnceAndRowsStayAsTheyAre) {
  EXPECT_EQ(Text({"a", "b"}, {{"[\"a\", \"b\"]\n1,\"x\ny\"\n"}, {"[\"a\", \"b\"]\n2,\n"}}),
            "a,b\n1,\"x\ny\"\n2,\n");
}

TEST(CsvJoin, NamesAreQuotedWhereTheyMustBe) {
  EXPECT_EQ(Text({"a,b", "\"", "", "x\ny", " z"}, {}), "\"a,b\",\"\"\"\",\"\",\"x\ny\", z\n");
  EXPECT_EQ(Text({}, {}), "");
}

TEST(CsvJoin, ValuesGoUnderTheirNames) {
  EXPECT_EQ(Text({"a", "b", "c"}, {{"[\"c\",\"a\"]\n\"3,\"\"\n\",1\n,\n"}}),
            "a,b,c\n1,,\"3,\"\"\n\"\n,,\n");
}

TEST(CsvJoin, AfterAnotherOrderTheOldOneIsTakenAsItIs) {
  EXPECT_EQ(Text({"a", "b"},
                 {{"[\"a\",\"b\"]\n1,2\n"}, {"[\"b\",\"a\"]\n4,3\n"}, {"[\"a\",\"b\"]\n5,6\n"}}),
            "a,b\n1,2\n3,4\n5,6\n");
}

// A result comes in parts that end anywhere.
TEST(CsvJoin, EveryCutOfAResultGivesTheSame) {
  for (const std::string names : {"[\"a\",\"b\"]\n", "[\"b\",\"a\"]\n", "[\"b\"]\n"}) {
    const bool one = names == "[\"b\"]\n";
    const std::string rows = one ? "\"x\n,\"\"\"\n\"\"\n" : "1,\"x\n,\"\"\"\n,\n";
    const std::string all = names + rows;
    const std::string whole = Text({"a", "b"}, {{all}});
    for (size_t i = 1; i < all.size(); ++i) {
      for (size_t j = i; j < all.size(); ++j) {
        EXPECT_EQ(Text({"a", "b"}, {{all.substr(0, i), all.substr(i, j - i), all.substr(j)}}),
                  whole);
      }
    }
  }
}

TEST(CsvJoin, ARowOfOneEmptyFieldIsNoEmptyLine) {
  EXPECT_EQ(Text({"b"}, {{"[\"b\"]\n\"\"\n"}}), "b\n\"\"\n");
}

TEST(CsvJoin, AColumnThatTheOutputLacksIsNamedWithBoth) {
  const Joint joined = Joined({"a", "b"}, {{"[\"a\", \"sc,ore\"]\n1,2\n"}});
  ASSERT_FALSE(joined.status.ok());
  EXPECT_EQ(joined.status.error().code, Code::kInvalid);
  EXPECT_THAT(joined.status.error().message, HasSubstr("has the column \"sc,ore\""));
  EXPECT_THAT(joined.status.error().message, HasSubstr("lack: a, b. It has a, sc,ore."));
}

TEST(CsvJoin, WhatNoWorkerHasMadeIsRefused) {
  for (const std::string rows : {"a,b\n1,2\n", "[]\n1\n", "[1]\n1\n", "{}\n1\n", "\n"}) {
    EXPECT_EQ(Joined({"a"}, {{rows}}).status.error().code, Code::kCorrupt) << rows;
  }
  EXPECT_EQ(Joined({"a", "b"}, {{"[\"b\",\"a\"]\n1\n"}}).status.error().code, Code::kCorrupt);
  EXPECT_EQ(Joined({"a"}, {{std::string(3 << 20, '[')}}).status.error().code, Code::kCorrupt);
}

}  // namespace
}  // namespace parallelrun::output
