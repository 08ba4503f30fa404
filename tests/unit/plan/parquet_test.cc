#include "tests/unit/plan/parquet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "plan/parquet_footer.h"
#include "plan/parquet_splitter.h"
#include "tests/support/disk_store.h"
#include "tests/unit/plan/folder.h"

namespace parallelrun::plan {
namespace {

using ::testing::HasSubstr;
using namespace std::string_literals;
using namespace std::string_view_literals;

// {1: i32 2} and {3: i64 rows} of a FileMetaData and then its row groups, rows below 64 each.
std::string Footer(const std::vector<std::pair<int, int>>& rows_and_bytes, int total) {
  std::string bytes = "\x15\x04\x26";
  bytes += static_cast<char>(total * 2);
  bytes += "\x19";
  bytes += static_cast<char>(rows_and_bytes.size() << 4 | 12);
  for (const auto& [rows, size] : rows_and_bytes) {
    bytes += "\x26";  // field 2, i64
    bytes += static_cast<char>(size * 2);
    bytes += "\x16";  // field 3, i64
    bytes += static_cast<char>(rows * 2);
    bytes += '\0';
  }
  return bytes + '\0';
}

TEST(ParquetFooterTest, ReadsWhatArrowWrites) {
  const auto groups = ParseParquetFooter(ParquetFooter());
  ASSERT_TRUE(groups.ok());
  ASSERT_EQ(groups->size(), 3u);
  EXPECT_EQ((*groups)[0].rows, 10u);
  EXPECT_EQ((*groups)[1].rows, 10u);
  EXPECT_EQ((*groups)[2].rows, 5u);
  EXPECT_EQ((*groups)[0].bytes, 240u);
  EXPECT_EQ((*groups)[1].bytes, 252u);
  EXPECT_EQ((*groups)[2].bytes, 163u);
}

TEST(ParquetFooterTest, SizeOfTheColumnsWhereTheFileDoesNotSayMore) {
  const auto groups = ParseParquetFooter(Footer({{5, 50}, {0, 0}, {7, 60}}, 12));
  ASSERT_TRUE(groups.ok());
  EXPECT_EQ((*groups)[2].rows, 7u);
  EXPECT_EQ((*groups)[2].bytes, 60u);
  EXPECT_TRUE(ParseParquetFooter(Footer({}, 0))->empty());
}

TEST(ParquetFooterTest, SkipsEveryTypeOfField) {
  // Fields 5 to 15: booleans, i8, i16, i64, double, binary, a long list, a set of booleans, a map
  // of i32 to struct, an empty map, and a struct within one, at last one with its id spelled out.
  std::string footer = Footer({{5, 50}}, 5);
  footer.pop_back();
  footer +=
      "\x11\x12\x13\x7F\x14\xFE\x01\x16\x80\x80\x01\x17"
      "12345678\x18\x03"
      "abc\x19\xF5\x10"
      "0123456789abcdef\x1A\x21\x01\x02\x1B\x01\x5C\x02\x00\x1B\x00\x1C\x1C\x15\x02\x00\x00"
      "\x05\xD0\x0F\x02\x00"sv;
  const auto groups = ParseParquetFooter(footer);
  ASSERT_TRUE(groups.ok());
  EXPECT_EQ(groups->size(), 1u);
}

TEST(ParquetFooterTest, CountsThatContradictEachOther) {
  EXPECT_TRUE(ParseParquetFooter(Footer({{5, 50}}, 5)).ok());
  EXPECT_EQ(ParseParquetFooter(Footer({{5, 50}, {3, 9}}, 6)).error().message,
            "its footer says that it has 6 rows, and its row groups have 8");
  EXPECT_FALSE(ParseParquetFooter(Footer({}, 6)).ok());
  std::string negative = Footer({{5, 50}}, 5);
  negative[3] = 9;  // -5 rows
  EXPECT_FALSE(ParseParquetFooter(negative).ok());
  EXPECT_FALSE(ParseParquetFooter("\0"sv).ok());
  EXPECT_FALSE(ParseParquetFooter("\x26\x00\x00"sv).ok());  // no row groups
  EXPECT_FALSE(ParseParquetFooter("").ok());
}

TEST(ParquetFooterTest, RowGroupsCountWhereTheTotalWasLeftAtNothing) {
  const auto groups = ParseParquetFooter(Footer({{4, 50}, {2, 50}}, 0));
  ASSERT_TRUE(groups.ok());
  ASSERT_EQ(groups->size(), 2u);
  EXPECT_EQ((*groups)[0].rows, 4u);
  EXPECT_EQ((*groups)[1].rows, 2u);
}

TEST(ParquetFooterTest, CutOffAnywhereIsAnError) {
  const std::string footer = ParquetFooter();
  for (size_t size = 0; size + 1 < footer.size(); ++size) {
    EXPECT_FALSE(ParseParquetFooter(std::string(footer, 0, size)).ok()) << size;
  }
}

// Whatever the bytes are: a value or an error, never a crash, a giant allocation or a long wait.
TEST(ParquetFooterTest, HostileBytesDoNoHarm) {
  const std::string footer = ParquetFooter();
  for (size_t bit = 0; bit < footer.size() * 8; ++bit) {
    std::string changed = footer;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << (bit % 8)));
    const auto groups = ParseParquetFooter(changed);
    if (groups.ok()) {
      EXPECT_LE(groups->size(), footer.size());
    }
  }
  std::mt19937 random(20240229);
  for (int i = 0; i < 20000; ++i) {
    std::string bytes(random() % 200, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    (void)ParseParquetFooter(bytes);
    std::string mixed = footer;
    for (int k = 0; k < 4; ++k) mixed[random() % mixed.size()] = static_cast<char>(random());
    (void)ParseParquetFooter(mixed);
  }
  // Structs and lists within each other without end, and counts that nothing follows.
  EXPECT_FALSE(ParseParquetFooter(std::string(100'000, '\x1C')).ok());
  EXPECT_FALSE(ParseParquetFooter(std::string(100'000, '\x19')).ok());
  EXPECT_FALSE(ParseParquetFooter("\x49\xFC\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F"sv).ok());
  EXPECT_FALSE(ParseParquetFooter("\x1B\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F\x11"sv).ok());
}

class PlanParquetTest : public ::testing::Test {
 protected:
  std::vector<job::Slice> Cut(const std::string& file, uint64_t size, uint64_t from = 0) {
    const auto splitter =
        ParquetSplitter::Open(DiskStore(), NameOnDisk(folder_.Write("a.parquet", file)));
    EXPECT_TRUE(splitter.ok());
    if (!splitter.ok()) return {};
    EXPECT_EQ((*splitter)->found().size, file.size());
    (*splitter)->Seek(from);
    std::vector<job::Slice> slices;
    while (true) {
      const auto slice = (*splitter)->Next(size);
      EXPECT_TRUE(slice.ok());
      if (!*slice) return slices;
      slices.push_back(**slice);
    }
  }
  std::string Refusal(const std::string& file) {
    const auto splitter =
        ParquetSplitter::Open(DiskStore(), NameOnDisk(folder_.Write("a.parquet", file)));
    return splitter.ok() ? "ok" : splitter.error().message;
  }

  PlanFolder folder_;
};

// 8.1: a file that is smaller than the size is one mini-batch, a larger one is split, and one with
// a single row group cannot be.
TEST_F(PlanParquetTest, RowGroupsAreJoinedUpToTheSize) {
  const std::string file = ParquetFile(ParquetFooter());
  const auto cut = [&](uint64_t size, uint64_t from = 0) {
    std::vector<std::vector<uint64_t>> found;
    for (const job::Slice& s : Cut(file, size, from)) found.push_back({s.offset, s.length, s.rows});
    return found;
  };
  using Found = std::vector<std::vector<uint64_t>>;
  EXPECT_EQ(cut(1), (Found{{0, 1, 10}, {1, 1, 10}, {2, 1, 5}}));
  EXPECT_EQ(cut(241), (Found{{0, 2, 20}, {2, 1, 5}}));
  EXPECT_EQ(cut(1 << 20), (Found{{0, 3, 25}}));
  EXPECT_EQ(cut(1, 2), (Found{{2, 1, 5}}));
  EXPECT_EQ(cut(1, 3), Found{});
}

TEST_F(PlanParquetTest, RowGroupsWithoutRowsMakeNoMiniBatch) {
  EXPECT_TRUE(Cut(ParquetFile(Footer({}, 0)), 1).empty());
  EXPECT_TRUE(Cut(ParquetFile(Footer({{0, 0}, {0, 0}}, 0)), 1).empty());
  const auto slices = Cut(ParquetFile(Footer({{0, 0}, {5, 9}, {0, 0}, {6, 9}}, 11)), 1);
  ASSERT_EQ(slices.size(), 2u);
  EXPECT_EQ(slices[0].offset, 1u);
  EXPECT_EQ(slices[0].length, 2u);
  EXPECT_EQ(slices[0].rows, 5u);
  EXPECT_EQ(slices[1].offset, 3u);
}

TEST_F(PlanParquetTest, WhatIsNoParquetIsRefusedByName) {
  EXPECT_THAT(Refusal(""), HasSubstr("a.parquet cannot be read as Parquet: it is too short"));
  EXPECT_THAT(Refusal("a,b\n1,2\n3,4\n5,6\n"), HasSubstr("does not end with the mark"));
  std::string file = ParquetFile(ParquetFooter());
  file.back() = 'E';
  EXPECT_THAT(Refusal(file), HasSubstr("its footer is encrypted"));
  EXPECT_THAT(Refusal("PAR1\x01\0\0\0PAR1"s), HasSubstr("its footer is cut off"));
  EXPECT_THAT(Refusal("PAR1\0\0\0\0PAR1"s), HasSubstr("its footer is not that of a Parquet file"));
  EXPECT_EQ(ParquetSplitter::Open(DiskStore(), NameOnDisk(folder_ / "none")).error().code,
            Code::kNotFound);
}

}  // namespace
}  // namespace parallelrun::plan
