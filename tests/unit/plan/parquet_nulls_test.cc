#include "plan/parquet_nulls.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "parquet/thrift_writer.h"
#include "plan/columns/parquet_types.h"
#include "plan/listing.h"
#include "plan/parquet_splitter.h"
#include "plan/snappy_begin.h"
#include "tests/support/disk_store.h"
#include "tests/unit/plan/folder.h"
#include "tests/unit/plan/parquet.h"

namespace parallelrun::plan {
namespace {

using namespace std::string_literals;
using parquet::ThriftType;
using parquet::ThriftWriter;

constexpr int64_t kNoCodec = 0;

// Pages of 100 values as pyarrow writes them without statistics: (codec, page), none missing and
// one.
struct TwoPages {
  int64_t codec;
  std::string_view none;
  std::string_view some;
};
const TwoPages kPages[] = {
    {0, "1500152815282c15c8011500150615061c00000003000000c80101ffffffffffffffffffffffff0f",
     "1500152e152e2c15c8011500150615061c00000006000000780103fe4001ffffffffffffffffffffffff07"},
    {1, "15001528152c2c15c8011500150615061c000000144c03000000c80101ffffffffffffffffffffffff0f",
     "1500152e15322c15c8011500150615061c000000175806000000780103fe4001ffffffffffffffffffffffff07"},
    {2,
     "15001528153e2c15c8011500150615061c0000001f8b08000000000000036366606038c1c8f81f09f00300c72f07"
     "c514000000",
     "1500152e15442c15c8011500150615061c0000001f8b080000000000000363636060a86064fee7c0f81f09b00300"
     "c8fae4e817000000"},
    {6, "1500152815302c15c8011500150615061c00000028b52ffd20147d00004803000000c80101ff0f010006e002",
     "1500152e15362c15c8011500150615061c00000028b52ffd20179500006006000000780103fe4001ff07010006f0"
     "02"},
};

Nulls OfPage(std::string_view bytes, int64_t codec = kNoCodec) {
  const auto page = ReadPageNulls(bytes, codec);
  return page ? page->nulls : Nulls::kUntold;
}

TEST(ParquetNullsTest, LevelsOfEachCodecTell) {
  for (const TwoPages& pages : kPages) {
    EXPECT_EQ(OfPage(FromHex(pages.none), pages.codec), Nulls::kNone) << pages.codec;
    EXPECT_EQ(OfPage(FromHex(pages.some), pages.codec), Nulls::kSome) << pages.codec;
    const auto page = ReadPageNulls(FromHex(pages.none), pages.codec);
    EXPECT_EQ(page->values, 100u);
    EXPECT_EQ(page->size, pages.none.size() / 2);
    // Levels that are not there.
    const std::string cut = FromHex(pages.none).substr(0, 21);
    EXPECT_EQ(OfPage(cut, pages.codec), Nulls::kUntold) << pages.codec;
    EXPECT_EQ(OfPage(FromHex(pages.none), 5), Nulls::kUntold) << "a codec that is not known";
  }
}

TEST(ParquetNullsTest, LevelsInBitsAndRuns) {
  const auto of = [](const std::string& levels, int values) {
    std::string page;
    ThriftWriter to(page);
    to.I32(1, 0);
    to.I32(2, 100);
    to.I32(3, 100);
    to.BeginStruct(5);
    to.I32(1, values);
    to.I32(2, 0);
    to.I32(3, 3);
    to.I32(4, 3);
    to.EndStruct();
    to.EndStruct();
    return OfPage(page + "\x09\0\0\0"s + levels);
  };
  EXPECT_EQ(of("\x03\x07", 3), Nulls::kNone) << "what is behind the last value says nothing";
  EXPECT_EQ(of("\x03\x05", 3), Nulls::kSome);
  EXPECT_EQ(of("\x05\xFF\x03", 10), Nulls::kNone) << "two groups";
  EXPECT_EQ(of("\x05\xFF\x01", 10), Nulls::kSome);
  EXPECT_EQ(of("\x03\xFF\x04\x01", 10), Nulls::kNone) << "a group, and a run";
  EXPECT_EQ(of("\x05\xFF", 10), Nulls::kUntold);
  EXPECT_EQ(of("\x02\x01\x02\0"s, 2), Nulls::kSome);
  EXPECT_EQ(of("\0\x01"s, 2), Nulls::kUntold) << "a run of nothing";
  EXPECT_EQ(of("", 2), Nulls::kUntold);
  EXPECT_EQ(of("", 0), Nulls::kNone);
}

TEST(ParquetNullsTest, CountsOfPagesTell) {
  EXPECT_EQ(OfPage(FromHex("1506151c151c5c150615001506150015041500121c000000")), Nulls::kNone);
  EXPECT_EQ(OfPage(FromHex("1506151415145c150615021506150015041500121c000000")), Nulls::kSome);
  EXPECT_EQ(OfPage(FromHex("1506151415145c150615011506150015041500121c000000")), Nulls::kUntold)
      << "-1 is no count";
  const auto counted = [](int64_t nulls) {
    std::string page;
    ThriftWriter to(page);
    to.I32(1, 0);
    to.I32(3, 40);
    to.BeginStruct(5);
    to.I32(1, 7);
    to.BeginStruct(5);
    to.I64(3, nulls);
    to.EndStruct();
    to.EndStruct();
    to.EndStruct();
    return OfPage(page);
  };
  EXPECT_EQ(counted(0), Nulls::kNone);
  EXPECT_EQ(counted(2), Nulls::kSome);
  EXPECT_EQ(counted(-1), Nulls::kUntold);
}

// {1: null_pages, 5: null_counts}, each below 64.
std::string Index(const std::vector<int>& counts) {
  std::string index = "\x19";
  index += static_cast<char>(counts.size() << 4 | static_cast<int>(ThriftType::kTrue));
  index += std::string(counts.size(), '\x02') + "\x49";
  index += static_cast<char>(counts.size() << 4 | static_cast<int>(ThriftType::kI64));
  for (const int count : counts) index += static_cast<char>(count < 0 ? 1 : count * 2);
  return index + '\0';
}

TEST(ParquetNullsTest, TheColumnIndexTells) {
  EXPECT_EQ(NullsByIndex(Index({0, 0})), Nulls::kNone);
  EXPECT_EQ(NullsByIndex(Index({0, 3, 0})), Nulls::kSome);
  EXPECT_EQ(NullsByIndex(Index({0, -1})), Nulls::kUntold);
  EXPECT_EQ(NullsByIndex(Index({-1, 2})), Nulls::kSome);
  EXPECT_EQ(NullsByIndex(Index({})), Nulls::kUntold);
  EXPECT_EQ(NullsByIndex("\0"s), Nulls::kUntold);
  EXPECT_EQ(NullsByIndex(Index({0, 0}).substr(0, 5)), Nulls::kUntold);
}

TEST(ParquetNullsTest, HostileBytesDoNoHarm) {
  std::mt19937 random(11);  // NOLINT(bugprone-random-generator-seed)
  for (int i = 0; i < 20'000; ++i) {
    const TwoPages& pages = kPages[random() % 4];
    std::string changed = FromHex(pages.some);
    for (int k = 0; k <= i % 4; ++k) {
      changed[random() % changed.size()] = static_cast<char>(random());
    }
    (void)ReadPageNulls(changed, pages.codec);
    (void)NullsByIndex(changed);
    EXPECT_LE(SnappyBegin(changed, 50).size(), 50u);
  }
}

TEST(SnappyBeginTest, LiteralsAndCopies) {
  EXPECT_EQ(SnappyBegin("\x09\x08"
                        "abc"
                        "\x09\x03"
                        "\x04"
                        "xy",
                        100),
            "abcabcabcxy"s);
  EXPECT_EQ(SnappyBegin("\x09\x08"
                        "abc"
                        "\x09\x03",
                        5),
            "abcab");
  EXPECT_EQ(SnappyBegin("\x03\x08"
                        "ab",
                        100),
            "ab")
      << "cut off";
  EXPECT_EQ(SnappyBegin("\x05\x00"
                        "a\x0E\x01\x00"s,
                        100),
            "aaaaa")
      << "an offset of two bytes";
  EXPECT_EQ(SnappyBegin("\x03\xF0\x02"
                        "abc",
                        100),
            "abc")
      << "a length of its own";
  EXPECT_EQ(SnappyBegin("\x05\x00"
                        "a\x05\x09"s,
                        100),
            "a")
      << "from before the beginning";
  EXPECT_EQ(SnappyBegin("", 100), "");
}

// --- whole files

// int32 id without a missing value, int32 no with one in the second row group, and boolean ok:
// pages of no codec, without statistics.
constexpr std::string_view kUncounted =
    "504152311500151c151c2c15041500150615061c0000000200000004010700000008000000264a1c150219250600"
    "191802696415001604164216422608491c1500150015020000001500151c151c2c15041500150615061c00000002"
    "0000000401010000000200000026d2011c1502192506001918026e6f1500160416421642269001491c1500150015"
    "020000001500150e150e2c15041500150615061c0000000200000004010326d0021c1500192506001918026f6b15"
    "00160416341634269c02491c1500150015020000001500151c151c2c15041500150615061c000000020000000401"
    "090000000700000026dc031c15021925060019180269641500160416421642269a03491c15001500150200000015"
    "00151415142c15041500150615061c0000000200000003010300000026e0041c1502192506001918026e6f150016"
    "04163a163a26a604491c1500150015020000001500150e150e2c15041500150615061c0000000200000004010326"
    "de051c1500192506001918026f6b150016041634163426aa05491c1500150015020000001504194c350018067363"
    "68656d611506001502250218026964001502250218026e6f001500250218026f6b001608192c193c264a1c150219"
    "250600191802696415001604164216422608491c15001500150200000026d2011c1502192506001918026e6f1500"
    "160416421642269001491c15001500150200000026d0021c1500192506001918026f6b1500160416341634269c02"
    "491c15001500150200000016b8011604260816b801140000193c26dc031c15021925060019180269641500160416"
    "421642269a03491c15001500150200000026e0041c1502192506001918026e6f15001604163a163a26a604491c15"
    "001500150200000026de051c1500192506001918026f6b150016041634163426aa05491c15001500150200000016"
    "b0011604269a0316b0011402002820706172717565742d6370702d6172726f772076657273696f6e2031372e302e"
    "30193c1c00001c00001c0000005901000050415231";

TEST(ParquetNullsTest, PagesAreAskedWhereTheFooterDoesNotSay) {
  const PlanFolder folder;
  const std::string path = folder.Write("a.parquet", FromHex(kUncounted));
  NullReads reads;
  auto columns = ReadParquetColumns(DiskStore(), NameOnDisk(path), reads);
  ASSERT_TRUE(columns.ok());
  EXPECT_FALSE((*columns)[0].nulls);
  EXPECT_TRUE((*columns)[1].nulls);
  EXPECT_FALSE((*columns)[2].nulls);
  for (const ParquetColumn& column : *columns) EXPECT_TRUE(column.untold.empty());
  EXPECT_EQ(reads.left, kMostNullReads - 6);
  ParquetTypes types;
  ASSERT_TRUE(types.Add(path, *columns).ok());
  EXPECT_EQ(ParquetColumnsLine(types.Json(), 100), "columns: id int32, no float64, ok bool");
  EXPECT_EQ(ParquetNullsWarning(types.Json(), 100), "");
  // Of the second file nothing is asked of the column that has some anyway.
  ASSERT_TRUE(ReadParquetColumns(DiskStore(), NameOnDisk(path), reads).ok());
  EXPECT_EQ(reads.left, kMostNullReads - 10);
}

TEST(ParquetNullsTest, WhatNobodySaysIsWarnedOf) {
  const PlanFolder folder;
  const std::string path = folder.Write("a.parquet", FromHex(kUncounted));
  NullReads reads;
  reads.left = 3;
  auto columns = ReadParquetColumns(DiskStore(), NameOnDisk(path), reads);
  ASSERT_TRUE(columns.ok());
  ParquetTypes types;
  ASSERT_TRUE(types.Add(path, *columns).ok());
  EXPECT_EQ(ParquetColumnsLine(types.Json(), 100), "columns: id int32, no float64, ok object");
  EXPECT_EQ(ParquetNullsWarning(types.Json(), 100),
            "; warning: the files do not say whether values are missing in the columns no "
            "(float64), ok (object), so they are read as if some were; to keep whole numbers and "
            "truth values, write the files again with null counts in their statistics, as pyarrow "
            "and DuckDB do");
  // Another file that says so settles it.
  reads.left = 100;
  reads.settled.clear();
  ASSERT_TRUE(types.Add(path, *ReadParquetColumns(DiskStore(), NameOnDisk(path), reads)).ok());
  EXPECT_NE(ParquetNullsWarning(types.Json(), 100).find("the column ok (object), so it is read"),
            std::string::npos);
}

}  // namespace
}  // namespace parallelrun::plan
