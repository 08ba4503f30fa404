#include "parquet/row_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "parquet/thrift_reader.h"
#include "parquet/thrift_writer.h"

namespace parallelrun::parquet {
namespace {

using testing::HasSubstr;

std::string FromHex(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

// What pyarrow 17 made of the integers 1, 2 and a missing one: a header, 19 bytes, with an empty
// struct of statistics, and 31 bytes of zstd.
const std::string kHeader = FromHex("1500152c153e2c15061500150615061c000000");
const std::string kPage = FromHex("28b52ffd2016b1000002000000030301000000000000000200000000000000");

// Three rows: those integers, in two pages; and a column without a value.
std::string ThreeRows() {
  const std::string one = PageHeader({1, 14, 14}) + FromHex("02000000030101") + "1234567";
  const std::string two = PageHeader({2, 6, 6}) + FromHex("020000000300");
  return R"({"rows":3,"codec":"none","columns":[{"name":"a","type":"int64","bytes":)" +
         std::to_string(one.size() + two.size()) + R"(},{"name":"n","type":"null"}]})" + "\n" +
         one + two;
}

// Writes down what it takes.
class Notes final : public RowGroupTaker {
 public:
  Status TakeHead(const RowGroupHead& head) override {
    text += "head " + std::to_string(head.rows) + " " + std::to_string(head.columns.size());
    return {};
  }
  Status TakeColumn(size_t column) override {
    text += "\ncolumn " + std::to_string(column);
    return {};
  }
  Status TakePage(const Page& page) override {
    text += "\npage " + std::to_string(page.values) + " ";
    return {};
  }
  Status TakeBytes(std::string_view bytes) override {
    text += bytes;
    return {};
  }
  Status TakeEnd() override {
    text += "\nend";
    return {};
  }
  std::string text;
};

// What is taken of these pieces, or the refusal.
std::string Taken(const std::vector<std::string_view>& pieces) {
  Notes notes;
  RowGroupReader reader(notes);
  for (const std::string_view piece : pieces) {
    if (const Status added = reader.Add(piece); !added.ok()) return added.error().message;
  }
  return reader.whole() ? notes.text : "cut";
}

TEST(ThriftWriterTest, WhatItWritesIsRead) {
  std::string bytes;
  ThriftWriter to(bytes);
  to.I32(1, -7);
  to.BeginStruct(3);
  to.I64(20, INT64_MIN);  // farther than the short form reaches
  to.Boolean(21, true);
  to.EndStruct();
  to.List(4, ThriftType::kBinary, 20);
  for (int i = 0; i < 20; ++i) to.BinaryElement(std::string(200, 'x'));
  to.EndStruct();

  ThriftReader from(bytes);
  EXPECT_EQ(from.NextField(0).id, 1);
  EXPECT_EQ(from.Integer(), -7);
  EXPECT_EQ(from.NextField(1).type, ThriftType::kStruct);
  EXPECT_EQ(from.NextField(0).id, 20);
  EXPECT_EQ(from.Integer(), INT64_MIN);
  EXPECT_EQ(from.NextField(20).type, ThriftType::kTrue);
  EXPECT_EQ(from.NextField(21).type, ThriftType::kStop);
  EXPECT_EQ(from.NextField(3).id, 4);
  EXPECT_EQ(from.List().count, 20U);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(from.Binary().size(), 200U);
  EXPECT_EQ(from.NextField(4).type, ThriftType::kStop);
  EXPECT_TRUE(from.ok());
  EXPECT_EQ(from.left(), 0U);
}

TEST(PageTest, AHeaderOfPyarrowsIsRead) {
  const auto read = ReadPageHeader(kHeader + kPage);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->page, (Page{3, 22, 31}));
  EXPECT_EQ(read->header, kHeader.size());
}

TEST(PageTest, WhatIsWrittenIsRead) {
  for (const Page page : {Page{1, 6, 6}, Page{0x7FFFFFFF, 0x7FFFFFFF, 1}, Page{300, 1, 70000}}) {
    const std::string header = PageHeader(page);
    const auto read = ReadPageHeader(header + "more");
    ASSERT_TRUE(read);
    EXPECT_EQ(read->page, page);
    EXPECT_EQ(read->header, header.size());
    for (size_t i = 0; i < header.size(); ++i) EXPECT_FALSE(ReadPageHeader(header.substr(0, i)));
  }
}

TEST(PageTest, OtherPagesAreNotTaken) {
  const auto header = [](int32_t type, int32_t bytes, int32_t encoding, int32_t levels) {
    std::string text;
    ThriftWriter to(text);
    to.I32(1, type);
    to.I32(2, bytes);
    to.I32(3, bytes);
    to.BeginStruct(5);
    to.I32(1, 3);
    to.I32(2, encoding);
    to.I32(3, levels);
    to.I32(4, levels);
    to.EndStruct();
    to.EndStruct();
    return text;
  };
  EXPECT_TRUE(ReadPageHeader(header(0, 5, 0, 3)));
  EXPECT_FALSE(ReadPageHeader(header(2, 5, 0, 3))) << "a dictionary";
  EXPECT_FALSE(ReadPageHeader(header(0, -1, 0, 3))) << "no length";
  EXPECT_FALSE(ReadPageHeader(header(0, 5, 8, 3))) << "places in a dictionary";
  EXPECT_FALSE(ReadPageHeader(header(0, 5, 0, 4))) << "levels of old";
  EXPECT_FALSE(ReadPageHeader(""));
}

TEST(PageTest, MissingValuesAreLevelsOfZero) {
  EXPECT_EQ(MissingValues(3, false), FromHex("020000000600"));
  EXPECT_EQ(MissingValues(100, true), FromHex("03000000c8010003000000c80100"));
}

TEST(RowGroupTest, ItComesAsHeadColumnsAndPages) {
  EXPECT_EQ(Taken({ThreeRows()}), std::string("head 3 2\ncolumn 0\npage 1 ") +
                                      FromHex("02000000030101") + "1234567\npage 2 " +
                                      FromHex("020000000300") + "\nend");
  const std::string real =
      R"({"rows":3,"codec":"zstd","columns":[{"name":"a","type":"int64","bytes":50}]})"
      "\n" +
      kHeader + kPage;
  EXPECT_TRUE(IsRowGroup({real}, 3));
  EXPECT_FALSE(IsRowGroup({real}, 4));
}

TEST(RowGroupTest, EveryCutGivesTheSame) {
  const std::string all = ThreeRows();
  const std::string whole = Taken({all});
  const std::string_view view = all;
  for (size_t i = 0; i <= all.size(); ++i) {
    EXPECT_EQ(Taken({view.substr(0, i), view.substr(i)}), whole);
    EXPECT_EQ(IsRowGroup({view.substr(0, i)}, 3), i == all.size()) << i;
  }
  std::vector<std::string_view> bytes;
  for (size_t i = 0; i < all.size(); ++i) bytes.push_back(view.substr(i, 1));
  EXPECT_EQ(Taken(bytes), whole);
  EXPECT_THAT(Taken({all, "x"}), HasSubstr("bytes behind its end"));
}

// Whatever stands there ends with a value or an error; and what is taken adds up.
TEST(RowGroupTest, FlippedBytesAreRefusedOrChangeNoCount) {
  const std::string all = ThreeRows();
  const size_t head = all.find('\n') + 1;
  for (size_t i = 0; i < all.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bytes = all;
      bytes[i] = static_cast<char>(bytes[i] ^ 1 << bit);
      const std::string taken = Taken({bytes});
      const bool whole = taken.ends_with("\nend");
      if (i >= head && whole) {
        EXPECT_TRUE(IsRowGroup({bytes}, 3)) << i;
      }
    }
  }
}

TEST(RowGroupTest, AHeadIsLookedAt) {
  const auto refusal = [](const std::string& head) {
    const auto read = ReadRowGroupHead(head);
    return read.ok() ? "" : read.error().message;
  };
  const std::string a = R"({"name":"a","type":"int64","bytes":9})";
  const auto with = [](const std::string& columns) {
    return R"({"rows":1,"codec":"zstd","columns":[)" + columns + "]}";
  };
  EXPECT_EQ(refusal(with(a)), "");
  EXPECT_EQ(refusal(with(a + R"(,{"name":"b","type":"null"})")), "");
  EXPECT_THAT(refusal(with(a + "," + a)), HasSubstr("two columns of one name"));
  EXPECT_THAT(refusal(with("")), HasSubstr("no column"));
  EXPECT_THAT(refusal(with(R"({"name":"a","type":"int96","bytes":9})")), HasSubstr("a type that"));
  EXPECT_THAT(refusal(with(R"({"name":"a","type":"int64"})")), HasSubstr("a column's size"));
  EXPECT_THAT(refusal(with(R"({"name":"a","type":"null","bytes":9})")), HasSubstr("size"));
  EXPECT_THAT(refusal(with(R"({"name":"a","type":"null","list":true})")), HasSubstr("size"));
  EXPECT_THAT(refusal(with(R"({"name":1,"type":"int64","bytes":9})")), HasSubstr("name"));
  EXPECT_THAT(refusal(with(R"({"name":"a","type":"int64","bytes":1e30})")), HasSubstr("bytes"));
  EXPECT_THAT(refusal(R"({"rows":0,"codec":"zstd","columns":[)" + a + "]}"), HasSubstr("no row"));
  EXPECT_THAT(refusal(R"({"rows":4294967296,"codec":"zstd","columns":[)" + a + "]}"),
              HasSubstr("rows"));
  EXPECT_THAT(refusal(R"({"rows":1,"codec":"lzo","columns":[)" + a + "]}"), HasSubstr("codec"));
  for (const char* text : {"", "[]", "{}", "[[[[[[[[[[]]]]]]]]]]", "\xFF"}) {
    EXPECT_THAT(refusal(text), HasSubstr("no row group")) << text;
  }
  EXPECT_THAT(Taken({std::string(3 << 20, ' ')}), HasSubstr("no head")) << "it is bounded";
}

TEST(RowGroupTest, PagesMustAddUp) {
  const auto group = [](bool list, const std::string& pages, size_t bytes) {
    return R"({"rows":3,"codec":"none","columns":[{"name":"a","type":"int64","list":)" +
           std::string(list ? "true" : "false") + R"(,"bytes":)" + std::to_string(bytes) + "}]}\n" +
           pages;
  };
  const auto refusal = [&group](bool list, const std::string& pages) {
    return Taken({group(list, pages, pages.size())});
  };
  const std::string page = FromHex("020000000600");
  EXPECT_THAT(refusal(false, PageHeader({3, 6, 6}) + page), HasSubstr("\nend"));
  EXPECT_THAT(refusal(false, PageHeader({4, 6, 6}) + page), HasSubstr("another number of values"));
  EXPECT_THAT(refusal(false, PageHeader({2, 6, 6}) + page), HasSubstr("another number of values"));
  EXPECT_THAT(refusal(true, PageHeader({4, 6, 6}) + page), HasSubstr("\nend"));
  EXPECT_THAT(refusal(true, PageHeader({2, 6, 6}) + page), HasSubstr("another number of values"));
  EXPECT_THAT(refusal(false, PageHeader({3, 7, 7}) + page), HasSubstr("a page's size"));
  EXPECT_THAT(refusal(false, PageHeader({3, 7, 6}) + page), HasSubstr("a page's size"));
  EXPECT_THAT(refusal(false, PageHeader({0, 6, 6}) + page), HasSubstr("a page's size"));
  EXPECT_THAT(refusal(false, std::string(2000, '\x15')), HasSubstr("a page without a header"));
  EXPECT_THAT(refusal(false, PageHeader({3, 6, 6}).substr(0, 5)),
              HasSubstr("a page without a header"));
}

}  // namespace
}  // namespace parallelrun::parquet
