#include "plan/columns/parquet_types.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "tests/unit/plan/parquet.h"

namespace parallelrun::plan {
namespace {

using ::testing::HasSubstr;
using Kind = ParquetType::Kind;

constexpr int64_t kBeyond = (int64_t{1} << 53) + 1;

ParquetType Bits(Kind kind, int bits) {
  ParquetType type;
  type.kind = kind;
  type.bits = bits;
  return type;
}
ParquetType Only(Kind kind) { return Bits(kind, 0); }
ParquetType Unit(Kind kind, int unit, bool utc = false) {
  ParquetType type = Only(kind);
  type.unit = unit;
  type.utc = utc;
  return type;
}
ParquetType Decimal(int precision, int scale) {
  ParquetType type = Only(Kind::kDecimal);
  type.precision = precision;
  type.scale = scale;
  return type;
}
const ParquetType kInt64 = Bits(Kind::kInteger, 64);
const ParquetType kInt32 = Bits(Kind::kInteger, 32);
const ParquetType kUint64 = Bits(Kind::kUnsigned, 64);
const ParquetType kDouble = Bits(Kind::kFloat, 64);
const ParquetType kFloat = Bits(Kind::kFloat, 32);

ParquetColumn Column(const ParquetType& type, bool nulls = false,
                     std::optional<ParquetRange> range = ParquetRange{0, 9}) {
  return {"a", type, nulls, range};
}

// What is said of the one column of these files.
nlohmann::json Decided(const std::vector<ParquetColumn>& files) {
  ParquetTypes types;
  for (const ParquetColumn& file : files) {
    const Status added = types.Add("/in/b.parquet", {file});
    if (!added.ok()) return added.error().message;
  }
  auto column = nlohmann::json::parse(types.Json())["columns"][0];
  EXPECT_EQ(column["name"], "a");
  column.erase("name");
  return column;
}
std::string Dtype(const std::vector<ParquetColumn>& files) {
  const auto column = Decided(files);
  return column.is_object() ? column.value("dtype", "") : "refused";
}
std::string Cast(const std::vector<ParquetColumn>& files) {
  const auto column = Decided(files);
  return column.is_object() ? column.value("cast", "") : "refused";
}

TEST(ParquetTypesTest, MissingValuesDecideForAllRowGroups) {
  EXPECT_EQ(Dtype({Column(kInt64)}), "int64");
  EXPECT_EQ(Dtype({Column(kInt64, true)}), "float64");
  EXPECT_EQ(Dtype({Column(kInt64, true, ParquetRange{-kBeyond, 0})}), "Int64");
  EXPECT_EQ(Dtype({Column(kInt64, true, ParquetRange{0, kBeyond})}), "Int64");
  EXPECT_EQ(Dtype({Column(kInt64, true, std::nullopt)}), "Int64");
  EXPECT_EQ(Dtype({Column(kInt32, true, std::nullopt)}), "float64");
  EXPECT_EQ(Dtype({Column(Bits(Kind::kUnsigned, 8))}), "uint8");
  EXPECT_EQ(Dtype({Column(kUint64, true, std::nullopt)}), "UInt64");
  EXPECT_EQ(Dtype({Column(kInt64), Column(kInt64, true)}), "float64");
  EXPECT_EQ(Dtype({Column(kInt64, true), Column(kInt64, false, ParquetRange{kBeyond, kBeyond})}),
            "Int64");
  EXPECT_EQ(Dtype({Column(Only(Kind::kBoolean))}), "bool");
  EXPECT_EQ(Dtype({Column(Only(Kind::kBoolean)), Column(Only(Kind::kBoolean), true)}), "object");
  EXPECT_EQ(Dtype({Column(Only(Kind::kText), true)}), "");
}

TEST(ParquetTypesTest, FilesThatDifferAreCastToTheWider) {
  EXPECT_EQ(Dtype({Column(kInt32), Column(kInt64)}), "int64");
  EXPECT_EQ(Dtype({Column(Bits(Kind::kUnsigned, 32)), Column(Bits(Kind::kInteger, 8))}), "int64");
  EXPECT_EQ(Dtype({Column(kInt32, false, std::nullopt), Column(kDouble)}), "float64");
  EXPECT_EQ(Dtype({Column(kFloat), Column(kDouble)}), "float64");
  EXPECT_EQ(Dtype({Column(Only(Kind::kNull), true), Column(kInt64)}), "float64");
  EXPECT_EQ(Dtype({Column(Only(Kind::kBoolean)), Column(Only(Kind::kNull))}), "object");
  EXPECT_EQ(Cast({Column(Decimal(5, 1)), Column(Decimal(6, 4))}), "decimal128(8, 4)");
  EXPECT_EQ(Cast({Column(Decimal(38, 0)), Column(Decimal(6, 4))}), "refused");
  EXPECT_EQ(Cast({Column(Unit(Kind::kTime, 3)), Column(Unit(Kind::kTime, 6))}), "time64[us]");
  EXPECT_EQ(Cast({Column(Unit(Kind::kTime, 3))}), "");
}

TEST(ParquetTypesTest, WhereTheValuesDecideTheRangesAreAsked) {
  EXPECT_EQ(Dtype({Column(kInt64), Column(kDouble)}), "float64");
  EXPECT_EQ(Dtype({Column(kDouble), Column(kInt64)}), "float64");
  const ParquetColumn large = Column(kInt64, false, ParquetRange{0, kBeyond});
  EXPECT_EQ(Dtype({large, Column(kDouble)}), "refused");
  EXPECT_EQ(Dtype({Column(kDouble), large}), "refused");
  EXPECT_EQ(Dtype({Column(kInt64), large, Column(kDouble)}), "refused");
  EXPECT_EQ(Dtype({Column(kInt64, false, std::nullopt), Column(kDouble)}), "refused");
  EXPECT_EQ(Dtype({Column(kUint64), Column(kInt64)}), "int64");
  EXPECT_EQ(Dtype({Column(kUint64, false, std::nullopt), Column(kInt64)}), "refused");
  const ParquetColumn seconds = Column(Unit(Kind::kTimestamp, 3), false, ParquetRange{-5, 5});
  EXPECT_EQ(Cast({seconds, Column(Unit(Kind::kTimestamp, 9))}), "timestamp[ns]");
  EXPECT_EQ(
      Cast({Column(Unit(Kind::kTimestamp, 6, true)), Column(Unit(Kind::kTimestamp, 3, true))}),
      "timestamp[us, tz=UTC]");
  // The year 1600 in nanoseconds, which int64 does not hold.
  const ParquetColumn old =
      Column(Unit(Kind::kTimestamp, 6), false, ParquetRange{-11'676'096'000'000'000, 0});
  EXPECT_EQ(Cast({old, Column(Unit(Kind::kTimestamp, 9))}), "refused");
  EXPECT_EQ(Cast({Column(Unit(Kind::kTimestamp, 9)), old}), "refused");
}

TEST(ParquetTypesTest, WhatLosesSomethingIsRefusedByName) {
  const std::vector<std::pair<ParquetType, ParquetType>> pairs = {
      {Decimal(5, 2), kDouble},
      {kInt64, Only(Kind::kText)},
      {Only(Kind::kBoolean), kInt32},
      {Unit(Kind::kTimestamp, 6, true), Unit(Kind::kTimestamp, 6)},
      {Only(Kind::kBytes), Only(Kind::kText)},
      {Only(Kind::kDate), Only(Kind::kText)},
      {Only(Kind::kOther), Only(Kind::kText)},
  };
  for (const auto& [one, other] : pairs) {
    EXPECT_EQ(Dtype({Column(one), Column(other)}), "refused") << TypeText(one);
    EXPECT_EQ(Dtype({Column(other), Column(one)}), "refused") << TypeText(one);
  }
  ParquetTypes types;
  ASSERT_TRUE(types.Add("/in/a.parquet", {Column(kInt64)}).ok());
  EXPECT_EQ(
      types.Add("/in/b.parquet", {Column(Only(Kind::kText))}).error().message,
      "/in/b.parquet: its column \"a\" is text, that of /in/a.parquet is int64, and no type "
      "holds the values of both for certain; write the files alike, or name those that differ "
      "in inputs[].exclude");
}

TEST(ParquetTypesTest, ColumnsAreMatchedByName) {
  ParquetTypes types;
  ParquetColumn b = Column(Only(Kind::kText));
  b.name = "b";
  ASSERT_TRUE(types.Add("/in/a.parquet", {Column(kInt64), b}).ok());
  ASSERT_TRUE(types.Add("/in/b.parquet", {b, Column(kInt64)}).ok());
  EXPECT_EQ(types.Json(), R"({"columns":[{"dtype":"int64","name":"a"},{"name":"b"}]})");
  EXPECT_EQ(ParquetColumnsLine(types.Json(), 100), "columns: a int64, b");
  EXPECT_EQ(ParquetColumnsLine(types.Json(), 10), "columns: a int64 and 1 more");
  EXPECT_EQ(ParquetFormatMembers(types.Json()),
            R"("columns":[{"dtype":"int64","name":"a"},{"name":"b"}])");
  EXPECT_THAT(types.Add("/in/c.parquet", {b}).error().message,
              HasSubstr("/in/c.parquet: it lacks the column \"a\", which /in/a.parquet has"));
  ParquetColumn c = b;
  c.name = "c";
  EXPECT_THAT(types.Add("/in/d.parquet", {Column(kInt64), b, c}).error().message,
              HasSubstr("/in/d.parquet: it has a column \"c\", which /in/a.parquet has not"));
}

TEST(ParquetTypesTest, TwoColumnsOfOneNameAreRefused) {
  ParquetTypes types;
  ParquetColumn b = Column(kInt64);
  b.name = "b";
  const std::string said =
      "/in/a.parquet: it has two columns \"a\", and a column is known by its name; write the file "
      "with other names, or write typing: PerMiniBatch, which leaves both to pandas";
  const std::vector<ParquetColumn> twice = {Column(kInt64), b, Column(kInt64)};
  EXPECT_EQ(types.Add("/in/a.parquet", twice).error().message, said);
  ASSERT_TRUE(types.Add("/in/b.parquet", {Column(kInt64), b}).ok());
  EXPECT_EQ(types.Add("/in/a.parquet", twice).error().message, said) << "behind a good one, too";
}

// --- footers

TEST(ParquetSchemaTest, ReadsWhatArrowWrites) {
  const auto columns = ParseParquetColumns(ParquetFooter());
  ASSERT_TRUE(columns.ok());
  ASSERT_EQ(columns->size(), 2u);
  EXPECT_EQ((*columns)[0].name, "id");
  EXPECT_EQ((*columns)[0].type, kInt64);
  EXPECT_TRUE((*columns)[0].nulls) << "this writer was told to leave statistics out";
  EXPECT_FALSE((*columns)[0].range);
  EXPECT_EQ((*columns)[1].name, "text");
  EXPECT_EQ((*columns)[1].type, Only(Kind::kText));
}

TEST(ParquetSchemaTest, TypesAndStatisticsOfRealColumns) {
  const auto columns = ParseParquetColumns(TypedParquetFooter());
  ASSERT_TRUE(columns.ok());
  std::vector<std::string> found;
  for (const ParquetColumn& c : *columns) {
    const bool whole = c.type.kind == Kind::kInteger || c.type.kind == Kind::kUnsigned ||
                       c.type.kind == Kind::kTimestamp;
    std::string text = c.name + " " + TypeText(c.type) + (c.nulls ? " nulls" : "");
    if (whole && c.range) {
      text += " " + std::to_string(c.range->min) + " " + std::to_string(c.range->max);
    }
    found.push_back(text);
  }
  EXPECT_THAT(found, ::testing::ElementsAre(
                         "i8 int8 nulls -3 7", "list nested", "u32 uint32 1 4000000000",
                         "i64 int64 nulls 1 1152921504606846976", "ok boolean nulls", "day date",
                         "when timestamp[us] nulls 1577923200000000 1577923200000000",
                         "zone timestamp[ms, UTC] nulls 1577923200000 1577923200000",
                         "time time[us]", "cost decimal(5, 1)", "f float32", "raw bytes",
                         "none null nulls", "u64 uint64", "struct nested", "last int32 5 7"));
}

TEST(ParquetSchemaTest, CutOffAnywhereIsAnError) {
  const std::string footer = TypedParquetFooter();
  for (size_t size = 0; size < footer.size(); ++size) {
    EXPECT_FALSE(ParseParquetColumns(std::string(footer, 0, size)).ok()) << size;
  }
}

TEST(ParquetSchemaTest, HostileBytesDoNoHarm) {
  const std::string footer = TypedParquetFooter();
  std::mt19937 random(7);  // NOLINT(bugprone-random-generator-seed)
  for (int i = 0; i < 4'000; ++i) {
    std::string changed = footer;
    for (int change = 0; change <= i % 4; ++change) {
      changed[random() % changed.size()] = static_cast<char>(random());
    }
    const auto columns = ParseParquetColumns(changed);
    if (!columns.ok()) continue;
    EXPECT_LE(columns->size(), footer.size());
    ParquetTypes types;
    if (types.Add("/in/a", *columns).ok() && types.Add("/in/b", *columns).ok()) types.Json();
  }
}

}  // namespace
}  // namespace parallelrun::plan
