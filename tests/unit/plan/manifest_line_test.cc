#include "plan/manifest_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace parallelrun::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Names = std::vector<std::string>;

// What `tell` makes of each entry, or what is wrong with its line.
template <typename Tell>
Names ReadLines(const PlanManifest& manifest, const Names& lines, const Tell& tell) {
  ManifestLines read(manifest);
  std::vector<std::string> said;
  for (const std::string& line : lines) {
    const auto entry = read.Read(line);
    if (!entry.ok()) {
      said.push_back(entry.error().message);
    } else if (*entry) {
      said.push_back(tell(**entry));
    }
  }
  return said;
}

// "NAME METADATA"
Names Read(const PlanManifest& manifest, const Names& lines) {
  return ReadLines(manifest, lines, [](const auto& entry) {
    return std::string(entry.name) + " " + std::string(entry.metadata);
  });
}

const PlanManifest kCsvManifest{"/list.csv", api::ManifestFormat::kCsv, "path"};
const PlanManifest kObjects{"/list.jsonl", api::ManifestFormat::kJsonLines, "path"};

TEST(ManifestLinesTest, RowsAreTexts) {
  EXPECT_THAT(Read(kCsvManifest, {"label,path,\"n, \"\"x\"\"\"", "cat,./a.png,007",
                                  "\"a, \"\"b\"\"\",\"b c.png\",", ",\xE9.png,\xE9"}),
              ElementsAre(R"(a.png {"label":"cat","path":"./a.png","n, \"x\"":"007"})",
                          R"(b c.png {"label":"a, \"b\"","path":"b c.png","n, \"x\"":""})",
                          "\xE9.png "
                          R"({"label":"","path":"\udce9.png","n, \"x\"":"\udce9"})"));
  PlanManifest other = kCsvManifest;
  other.column = "file";
  EXPECT_THAT(Read(other, {"file", "a"}), ElementsAre(R"(a {"file":"a"})"));
}

TEST(ManifestLinesTest, WhatIsNoRowIsRefused) {
  const auto wrong = [](const std::string& header, const std::string& row) {
    return Read(kCsvManifest, {header, row}).back();
  };
  EXPECT_EQ(wrong("path,label", "a,b,c"),
            "the row has 3 fields, and the header 2: quote a field that holds a comma");
  EXPECT_THAT(wrong("path,label", "a"), HasSubstr("the row has 1 field, and the header 2"));
  EXPECT_THAT(wrong("path,label", "a,\"b"), HasSubstr("a quote is still open at its end"));
  EXPECT_THAT(wrong("path,label", "a,\"b\"c"), HasSubstr("behind a closing quote"));
  EXPECT_THAT(wrong("path,label", "../a,b"), HasSubstr("leaves the folder"));
  EXPECT_THAT(wrong("path,label", ",b"), HasSubstr("is not how a listing writes a path"));
  const auto header = [](const std::string& line) { return Read(kCsvManifest, {line}).back(); };
  EXPECT_EQ(header("file,label"),
            "the header has no column \"path\", but file, label: write the name of the one with "
            "the paths as manifest.column");
  EXPECT_THAT(header("path,a,path"), HasSubstr("\"path\" stands in the header twice"));
}

// A number that only Python can hold stays one.
TEST(ManifestLinesTest, ObjectsStayAsTheyAreWritten) {
  const std::string line = R"({"id": 123456789012345678901234567890, "path": "a.png", "of": [1]})";
  EXPECT_THAT(Read(kObjects, {line}), ElementsAre("a.png " + line));
  for (const std::string bad : {"a.png", "[\"a.png\"]", "{\"path\": \"a\"", "{} {}"}) {
    EXPECT_THAT(Read(kObjects, {bad}), ElementsAre(HasSubstr("it is no JSON object"))) << bad;
  }
  for (const std::string bad : {"{}", "{\"path\": 7}", "{\"path\": null}", "{\"file\": \"a\"}"}) {
    EXPECT_THAT(Read(kObjects, {bad}), ElementsAre(HasSubstr("has no text \"path\""))) << bad;
  }
  EXPECT_THAT(Read(kObjects, {R"({"path": "a\u0000b"})"}), ElementsAre(HasSubstr("a NUL byte")));
}

// "SIZE ETAG"; "-": nothing.
Names ReadPins(const PlanManifest& manifest, const Names& lines) {
  return ReadLines(manifest, lines, [](const auto& entry) {
    const store::Pin& pin = entry.pin;
    return (pin.size ? std::to_string(*pin.size) : "-") + " " + (pin.etag.empty() ? "-" : pin.etag);
  });
}

TEST(ManifestLinesTest, ColumnsSayWhatAFileIs) {
  PlanManifest rows = kCsvManifest;
  rows.size_column = "Size";
  rows.etag_column = "ETag";
  EXPECT_THAT(ReadPins(rows, {"ETag,path,Size", "abc-2,a,17", "\"\"\"abc\"\"\",b,0", ",c,"}),
              ElementsAre("17 abc-2", "0 abc", "- -"));
  EXPECT_EQ(ReadPins(rows, {"path,ETag"}).back(),
            "the header has no column \"Size\", but path, ETag: write the name of the one with the "
            "sizes as manifest.sizeColumn");
  EXPECT_THAT(ReadPins(rows, {"path,Size"}).back(), HasSubstr("ETags as manifest.etagColumn"));
  for (const std::string bad : {"12kB", "-1", "+1", "1.0", " 1", "9223372036854775808", "1e3"}) {
    EXPECT_EQ(ReadPins(rows, {"path,Size,ETag", "a," + bad + ","}).back(),
              "\"" + bad + "\" is no size: write a number of bytes as \"Size\", or nothing");
  }
  for (const std::string bad : {"not there", "W/\"a\"", "a\tb", "\xC3\xA9", "a\x7F"}) {
    std::string quoted = "\"";
    for (const char c : bad) quoted += c == '"' ? "\"\"" : std::string(1, c);
    EXPECT_THAT(ReadPins(rows, {"path,Size,ETag", "a,," + quoted + "\""}).back(),
                HasSubstr("is no ETag"))
        << bad;
  }
  EXPECT_THAT(ReadPins(rows, {"path,Size,ETag", "a,," + std::string(247, 'e')}).back(),
              HasSubstr("is no ETag"));

  PlanManifest objects = kObjects;
  objects.size_column = "size";
  objects.etag_column = "etag";
  EXPECT_THAT(ReadPins(objects, {R"({"path": "a", "size": 17, "etag": "\"abc\""})",
                                 R"({"path": "b", "size": "17"})",
                                 R"({"path": "c", "size": null, "etag": ""})"}),
              ElementsAre("17 abc", "17 -", "- -"));
  for (const std::string bad : {"-1", "1.5", "true", "[1]", "{}", "12345678901234567890123"}) {
    EXPECT_EQ(ReadPins(objects, {R"({"path": "a", "size": )" + bad + "}"}).back(),
              "\"size\" is neither a text nor a number that is not negative: write one, or null")
        << bad;
  }
  EXPECT_THAT(ReadPins(objects, {R"({"path": "a", "etag": false})"}).back(),
              HasSubstr("\"etag\" is neither a text nor"));
}

}  // namespace
}  // namespace parallelrun::plan
