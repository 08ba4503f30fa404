#include "output/parquet/parquet_join.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "base/bytes.h"
#include "output/parquet/compression.h"
#include "output/parquet/double_page.h"
#include "output/parquet/output_columns.h"
#include "plan/parquet_footer.h"
#include "plan/parquet_schema.h"

namespace parallelrun::output {
namespace {

using parquet::Column;
using parquet::Type;
using testing::HasSubstr;

// A page of these values, none of them missing, without compression.
template <typename T>
std::string PageOf(const std::vector<T>& values) {
  std::string levels;
  Encoder to(levels);
  to.Text(std::string(1, static_cast<char>(values.size() << 1)) + '\x01');
  for (const T value : values) {
    std::array<char, sizeof(T)> raw{};
    std::memcpy(raw.data(), &value, sizeof value);
    to.Bytes({raw.data(), raw.size()});
  }
  return levels;
}

struct ColumnPage {
  Column column;
  std::string page;  // empty: none
};

// Of `codec` "zstd" the pages are not compressed all the same: nothing looks into them.
std::string GroupOf(uint32_t rows, const std::vector<ColumnPage>& columns,
                    const std::string& codec = "none") {
  std::string head;
  std::string body;
  for (const auto& [column, page] : columns) {
    const auto size = static_cast<uint32_t>(page.size());
    const std::string chunk = page.empty() ? "" : parquet::PageHeader({rows, size, size}) + page;
    head += std::string(head.empty() ? "" : ",") + R"({"name":")" + column.name + R"(","type":")" +
            std::string(parquet::TypeWord(column.type)) + R"(","list":)" +
            (column.list ? "true" : "false") + R"(,"bytes":)" + std::to_string(chunk.size()) + "}";
    body += chunk;
  }
  return R"({"rows":)" + std::to_string(rows) + R"(,"codec":")" + codec + R"(","columns":[)" +
         head + "]}\n" + body;
}

const Column kWhole{"a", Type::kInt64};
const Column kNumber{"a", Type::kDouble};

struct JointFile {
  Status status;
  std::string file;
};

JointFile JoinedFile(const std::vector<Column>& columns,
                     const std::vector<std::vector<std::string>>& results) {
  ParquetJoin join(columns);
  JointFile joined;
  const RowFormat::Put put = [&joined](std::string_view bytes) {
    joined.file += bytes;
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

std::string FooterOfFile(const std::string& file) {
  EXPECT_TRUE(file.starts_with("PAR1") && file.ends_with("PAR1"));
  const uint32_t length = Decoder(std::string_view(file).substr(file.size() - 8)).U32();
  EXPECT_LE(length + 12, file.size());
  return file.substr(file.size() - 8 - length, length);
}

std::vector<uint64_t> RowsOfGroups(const std::string& file) {
  const auto groups = plan::ParseParquetFooter(FooterOfFile(file));
  EXPECT_TRUE(groups.ok());
  std::vector<uint64_t> rows;
  if (groups.ok()) {
    for (const plan::ParquetRowGroup& group : *groups) rows.push_back(group.rows);
  }
  return rows;
}

TEST(ParquetJoin, SmallResultsShareARowGroup) {
  const Column other{"b", Type::kInt64};
  const std::string first = PageOf<int64_t>({1, 2});
  const std::string second = PageOf<int64_t>({7});
  const std::string first_of_b = PageOf<int64_t>({3, 4});
  const std::string second_of_b = PageOf<int64_t>({8});
  const JointFile joined =
      JoinedFile({kWhole, other}, {{""},
                                   {GroupOf(2, {{kWhole, first}, {other, first_of_b}})},
                                   {"", ""},
                                   {GroupOf(1, {{other, second_of_b}, {kWhole, second}})}});
  ASSERT_TRUE(joined.status.ok()) << joined.status.error().message;
  EXPECT_EQ(RowsOfGroups(joined.file), std::vector<uint64_t>{3});
  const auto page = [](const std::string& bytes, uint32_t rows) {
    const auto size = static_cast<uint32_t>(bytes.size());
    return parquet::PageHeader({rows, size, size}) + bytes;
  };
  EXPECT_TRUE(joined.file.starts_with("PAR1" + page(first, 2) + page(second, 1) +
                                      page(first_of_b, 2) + page(second_of_b, 1)))
      << "each column's pages as the workers made them, one behind the other";
}

// A result of so many rows, none of which has a value.
std::string MissingGroup(uint32_t rows) {
  return GroupOf(rows, {{kWhole, parquet::MissingValues(rows, false)}});
}

TEST(ParquetJoin, ARowGroupThatIsSharedHasSoManyRowsAtMost) {
  const uint32_t most = kMostSharedRows;
  const JointFile joined = JoinedFile({kWhole}, {{MissingGroup(most - 1)},
                                                 {MissingGroup(1)},
                                                 {MissingGroup(2)},
                                                 {MissingGroup(most - 1)},
                                                 {MissingGroup(most + 1)},
                                                 {MissingGroup(3)},
                                                 {MissingGroup(4)}});
  ASSERT_TRUE(joined.status.ok()) << joined.status.error().message;
  EXPECT_EQ(RowsOfGroups(joined.file),
            (std::vector<uint64_t>{most, 2, most - 1, uint64_t{most} + 1, 7}));
}

TEST(ParquetJoin, ARowGroupThatIsSharedHasSoManyBytesAtMost) {
  const Column text{"t", Type::kText};
  const auto result = [&text](uint64_t bytes, char of) {
    return std::vector<std::string>{GroupOf(1, {{text, std::string(bytes, of)}})};
  };
  const uint64_t half = kMostSharedBytes / 2 - 100;  // with the header of its page: below it
  const JointFile joined =
      JoinedFile({text}, {result(half, 'a'), result(half, 'b'), result(200, 'c'),
                          result(kMostSharedBytes, 'd'), result(1, 'e'), result(1, 'f')});
  ASSERT_TRUE(joined.status.ok()) << joined.status.error().message;
  EXPECT_EQ(RowsOfGroups(joined.file), (std::vector<uint64_t>{2, 1, 1, 2}));
  size_t at = 0;
  for (const char of : {'a', 'b', 'c', 'd', 'e', 'f'}) {
    const size_t next = joined.file.find(std::string(of < 'e' ? 200 : 1, of), at);
    ASSERT_NE(next, std::string::npos) << of;
    at = next;
  }
  EXPECT_LE(FooterOfFile(joined.file).size(),
            ParquetJoin({text}).Around({.results = 6, .rows = 6, .bytes = joined.file.size()}));
}

TEST(ParquetJoin, MissingValuesOfResultsThatFollowEachOtherAreOnePage) {
  const Column note{"n", Type::kInt64};
  const std::string page = PageOf<int64_t>({5});
  const std::string first = PageOf<int64_t>({1});
  const JointFile joined =
      JoinedFile({kWhole, note}, {{GroupOf(2, {{{"a", Type::kNull}, ""}})},
                                  {GroupOf(3, {{note, parquet::MissingValues(3, false)}})},
                                  {GroupOf(1, {{kWhole, first}, {note, page}})},
                                  {MissingGroup(1)}});
  ASSERT_TRUE(joined.status.ok()) << joined.status.error().message;
  EXPECT_EQ(RowsOfGroups(joined.file), std::vector<uint64_t>{7});
  const auto missing = [](uint32_t rows) {
    const std::string bytes = parquet::MissingValues(rows, false);
    const auto size = static_cast<uint32_t>(bytes.size());
    return parquet::PageHeader({rows, size, size}) + bytes;
  };
  const auto of_one = [](const std::string& bytes) {
    const auto size = static_cast<uint32_t>(bytes.size());
    return parquet::PageHeader({1, size, size}) + bytes;
  };
  EXPECT_TRUE(joined.file.starts_with("PAR1" + missing(5) + of_one(first) + missing(1) +
                                      missing(2) + missing(3) + of_one(page) + missing(1)));
}

// The pages of a column are compressed in one way.
TEST(ParquetJoin, ARowGroupIsOfOneCodec) {
  const std::string page = PageOf<int64_t>({1, 2});
  const std::string plain = GroupOf(2, {{kWhole, page}});
  const std::string zstd = GroupOf(2, {{kWhole, page}}, "zstd");
  const std::string lacks = GroupOf(300, {{{"b", Type::kNull}, ""}}, "zstd");
  const JointFile joined =
      JoinedFile({kWhole, {"b", Type::kText}}, {{plain}, {plain}, {zstd}, {lacks}, {plain}});
  ASSERT_TRUE(joined.status.ok()) << joined.status.error().message;
  EXPECT_EQ(RowsOfGroups(joined.file), (std::vector<uint64_t>{4, 302, 2}));
  const std::string missing = parquet::MissingValues(300, false);
  const auto stored = Compressed(missing);
  ASSERT_TRUE(stored.ok());
  EXPECT_NE(joined.file.find(parquet::PageHeader({300, static_cast<uint32_t>(missing.size()),
                                                  static_cast<uint32_t>(stored->size())}) +
                             *stored),
            std::string::npos);
  EXPECT_EQ(*Decompressed(*stored, static_cast<uint32_t>(missing.size())), missing);
  EXPECT_FALSE(Decompressed(*stored, static_cast<uint32_t>(missing.size()) + 1).ok());
}

TEST(ParquetJoin, TheRowGroupOfAResultIsToldOnceItsHeadIsThere) {
  ParquetJoin join({kWhole});
  const RowFormat::Put put = [](std::string_view) { return Status(); };
  ASSERT_TRUE(join.Begin(put).ok());
  EXPECT_EQ(join.RowGroup(), std::nullopt);
  const auto added = [&](const std::string& rows, bool first) {
    EXPECT_TRUE(join.Add(rows, first, put).ok());
    return join.RowGroup();
  };
  const std::string all = MissingGroup(1);
  const size_t head = all.find('\n') + 1;
  EXPECT_EQ(added(all.substr(0, head - 1), true), std::nullopt);
  EXPECT_EQ(added(all.substr(head - 1), false), 0U);
  EXPECT_EQ(added(MissingGroup(kMostSharedRows), true), 1U);
  EXPECT_EQ(added("", true), std::nullopt);
  EXPECT_EQ(added(MissingGroup(kMostSharedRows + 1), true), 2U);
  EXPECT_EQ(added(all, true), 3U);
  EXPECT_EQ(added(all, true), 3U);
}

TEST(ParquetJoin, EveryCutOfResultsThatShareARowGroupGivesTheSame) {
  const std::string one = GroupOf(2, {{{"b", Type::kNull}, ""}, {kWhole, PageOf<int64_t>({1, 2})}});
  const std::string two = GroupOf(1, {{kNumber, PageOf<double>({0.5})}});
  const std::vector<Column> columns = {kNumber, {"b", Type::kText}};
  const std::string whole = JoinedFile(columns, {{one}, {two}}).file;
  EXPECT_EQ(RowsOfGroups(whole), std::vector<uint64_t>{3});
  for (size_t i = 1; i < one.size(); ++i) {
    EXPECT_EQ(JoinedFile(columns, {{one.substr(0, i), one.substr(i)}, {two}}).file, whole);
  }
  for (size_t i = 1; i < two.size(); ++i) {
    EXPECT_EQ(JoinedFile(columns, {{one}, {two.substr(0, i), two.substr(i)}}).file, whole);
  }
}

TEST(ParquetJoin, EveryCutOfAResultGivesTheSame) {
  const std::string all = GroupOf(2, {{{"b", Type::kNull}, ""}, {kWhole, PageOf<int64_t>({1, 2})}});
  for (const Column& to : {kWhole, kNumber}) {
    const std::vector<Column> columns = {to, {"b", Type::kText}};
    const std::string whole = JoinedFile(columns, {{all}}).file;
    EXPECT_EQ(RowsOfGroups(whole), std::vector<uint64_t>{2});
    for (size_t i = 1; i < all.size(); ++i) {
      EXPECT_EQ(JoinedFile(columns, {{all.substr(0, i), all.substr(i)}}).file, whole);
      const JointFile cut = JoinedFile(columns, {{all.substr(0, i)}, {all}});
      EXPECT_EQ(cut.status.error().code, Code::kCorrupt);
      EXPECT_EQ(JoinedFile(columns, {{all.substr(0, i)}}).status.error().code, Code::kCorrupt);
    }
  }
}

TEST(ParquetJoin, FlippedBytesEndInAFileThatAddsUpOrInAnError) {
  const std::string all = GroupOf(2, {{{"b", Type::kNull}, ""}, {kWhole, PageOf<int64_t>({1, 2})}});
  for (size_t i = 0; i < all.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bytes = all;
      bytes[i] = static_cast<char>(bytes[i] ^ 1 << bit);
      for (const Column& to : {kWhole, kNumber}) {
        const JointFile joined = JoinedFile({to, {"b", Type::kText}}, {{bytes}});
        if (joined.status.ok()) {
          EXPECT_EQ(RowsOfGroups(joined.file).size(), 1U);
        }
      }
    }
  }
}

TEST(ParquetJoin, TheFooterTellsTheColumns) {
  const std::vector<Column> columns = {{"flag", Type::kBool},        {"n", Type::kInt64},
                                       {"x", Type::kDouble},         {"text", Type::kText},
                                       {"raw", Type::kBytes},        {"day", Type::kDate},
                                       {"at", Type::kTime},          {"when", Type::kTimestamp},
                                       {"utc", Type::kTimestampUtc}, {"nothing", Type::kNull}};
  const JointFile joined = JoinedFile(columns, {{GroupOf(2, {{{"flag", Type::kNull}, ""}})}});
  ASSERT_TRUE(joined.status.ok()) << joined.status.error().message;
  const auto read = plan::ParseParquetColumns(FooterOfFile(joined.file));
  ASSERT_TRUE(read.ok()) << read.error().message;
  std::string told;
  for (const plan::ParquetColumn& column : *read)
    told += column.name + " " + plan::TypeText(column.type) + "\n";
  EXPECT_EQ(told,
            "flag boolean\nn int64\nx float64\ntext text\nraw bytes\nday date\nat time[us]\n"
            "when timestamp[us]\nutc timestamp[us, UTC]\nnothing null\n");
  EXPECT_LE(FooterOfFile(joined.file).size(),
            ParquetJoin(columns).Around({.results = 1, .rows = 2, .bytes = 0}));
}

TEST(ParquetJoin, WholeNumbersBecomeNumbersWhereOthersAre) {
  const JointFile joined =
      JoinedFile({kNumber}, {{GroupOf(2, {{kWhole, PageOf<int64_t>({1, -2})}})}});
  ASSERT_TRUE(joined.status.ok()) << joined.status.error().message;
  EXPECT_NE(joined.file.find(PageOf<double>({1.0, -2.0})), std::string::npos);

  const int64_t exact = int64_t{1} << 53;
  EXPECT_TRUE(
      JoinedFile({kNumber}, {{GroupOf(1, {{kWhole, PageOf<int64_t>({exact})}})}}).status.ok());
  for (const int64_t lost : {exact + 1, INT64_MAX, -exact - 1}) {
    const JointFile refused =
        JoinedFile({kNumber}, {{GroupOf(1, {{kWhole, PageOf<int64_t>({lost})}})}});
    ASSERT_FALSE(refused.status.ok()) << lost;
    EXPECT_EQ(refused.status.error().code, Code::kInvalid);
    EXPECT_THAT(refused.status.error().message,
                HasSubstr("has " + std::to_string(lost) + " in the column a"));
  }
}

TEST(ParquetJoin, APageOfWholeNumbersIsNotTrusted) {
  const Column list{"a", Type::kInt64, true};
  const auto code = [](const parquet::Page& page, const std::string& bytes, parquet::Codec codec,
                       const Column& column) {
    const auto made = ToDoubles(page, bytes, codec, column);
    return made.ok() ? Code::kInternal : made.error().code;
  };
  const std::string page = PageOf<int64_t>({1});
  const auto size = static_cast<uint32_t>(page.size());
  EXPECT_EQ(code({1, size, size}, page, parquet::Codec::kNone, kWhole), Code::kInternal)
      << "it is right";
  EXPECT_EQ(code({1, size, size}, page, parquet::Codec::kZstd, kWhole), Code::kCorrupt)
      << "no zstd";
  EXPECT_EQ(code({1, size, size}, page, parquet::Codec::kNone, list), Code::kCorrupt)
      << "no such levels";
  EXPECT_EQ(code({1, 0x7FFFFFFF, size}, page, parquet::Codec::kZstd, kWhole), Code::kCorrupt)
      << "a bomb";
  const std::string cut = page.substr(0, size - 1);
  EXPECT_EQ(code({1, size - 1, size - 1}, cut, parquet::Codec::kNone, kWhole), Code::kCorrupt);
  EXPECT_EQ(code({1, 2, 2}, "xy", parquet::Codec::kNone, kWhole), Code::kCorrupt);
}

TEST(ParquetJoin, WithoutRowsItIsAFileAllTheSame) {
  const JointFile joined = JoinedFile({}, {{""}});
  ASSERT_TRUE(joined.status.ok());
  EXPECT_EQ(RowsOfGroups(joined.file).size(), 0U);
}

std::string TypesOf(const std::vector<Column>& columns) {
  std::string texts;
  for (const Column& column : columns) {
    texts += (texts.empty() ? "" : ", ") + column.name + " " + parquet::TypeText(column);
  }
  return texts;
}

TEST(OutputColumnsTest, TheFirstNamesThemAndAllMakeTheirTypes) {
  OutputColumns columns({});
  const Column numbers{"l", Type::kDouble, true};
  ASSERT_TRUE(columns.Add(0, {kWhole, {"b", Type::kNull}, {"l", Type::kInt64, true}}).ok());
  ASSERT_TRUE(columns.Add(1, {{"b", Type::kText}, {"a", Type::kNull}}).ok());
  ASSERT_TRUE(columns.Add(2, {numbers, kNumber}).ok());
  ASSERT_TRUE(columns.Add(3, {kWhole}).ok());
  EXPECT_EQ(TypesOf(columns.All()), "a double, b text, l list of double");
}

TEST(OutputColumnsTest, TheJobMayNameThem) {
  OutputColumns columns({"c", "a"});
  ASSERT_TRUE(columns.Add(0, {kWhole}).ok());
  EXPECT_EQ(TypesOf(columns.All()), "c null, a int64");
  const Status other = columns.Add(1, {{"x", Type::kText}});
  EXPECT_EQ(other.error().code, Code::kInvalid);
  EXPECT_THAT(
      other.error().message,
      HasSubstr("has the column x, which the columns of the output lack. It has x text. The "
                "output has c null, a int64."));
}

TEST(OutputColumnsTest, TypesThatDoNotGoTogetherAreToldWithBothSchemas) {
  OutputColumns columns({});
  ASSERT_TRUE(columns.Add(4, {kWhole, {"b", Type::kBool}}).ok());
  for (const Column& other : {Column{"a", Type::kText}, Column{"a", Type::kBool},
                              Column{"a", Type::kInt64, true}, Column{"a", Type::kTimestamp}}) {
    OutputColumns same = columns;
    const Status refused = same.Add(9, {other});
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, Code::kInvalid);
    EXPECT_THAT(refused.error().message, HasSubstr("has " + parquet::TypeText(other) +
                                                   " in the column a, and mini-batch 4 "
                                                   "has int64 there. It has a " +
                                                   parquet::TypeText(other) +
                                                   ". Until then the output has a int64, b bool."));
  }
}

}  // namespace
}  // namespace parallelrun::output
