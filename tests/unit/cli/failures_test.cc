#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/failures_table.h"

namespace parallelrun::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

FailedLine Line(const std::string& message, uint64_t mini_batch = 0,
                const std::string& location = "score.py:6") {
  FailedLine line;
  line.type = "ValueError";
  line.message = message;
  line.location = location;
  line.item = "/data/" + std::to_string(mini_batch);
  line.log = "user/error/0/process000.txt";
  line.mini_batch = mini_batch;
  line.tries = 3;
  return line;
}

TEST(ErrorLogsOfTest, EachNameOnceAndNoneThatLeadsOut) {
  std::vector<ErrorGroup> groups(6);
  groups[0].first.log = "user/error/1/process000.txt";
  groups[1].first.log = "user/error/0/process001.txt";
  groups[2].first.log = "user/error/1/process000.txt";
  groups[3].first.log = "user/error/../../../etc/passwd";
  groups[4].first.log = "/etc/passwd";
  groups[5].first.log = "";
  EXPECT_THAT(ErrorLogsOf(groups), ElementsAre("0/process001.txt", "1/process000.txt"));
  EXPECT_THAT(ErrorLogsOf({}), IsEmpty());
}

TEST(FailedLineTest, OfAFile) {
  const auto line = ReadFailedLine(
      R"({"attempt":3,"firstItem":10,"id":4294967298,"items":1,"kind":"Exception","location":"s.py:6",)"
      R"("log":"user/error/0/p.txt","message":"bad","miniBatch":2,"type":"ValueError","item":"/a b"})");
  ASSERT_TRUE(line.ok());
  EXPECT_EQ(line->type, "ValueError");
  EXPECT_EQ(line->location, "s.py:6");
  EXPECT_EQ(line->mini_batch, 2U);
  EXPECT_EQ(line->id, 4294967298U);
  EXPECT_EQ(line->tries, 3U);
  EXPECT_THAT(line->paths, ElementsAre("/a b"));
}

TEST(FailedLineTest, ANameIsBytes) {
  // As JsonText writes it: a byte that is not UTF-8, a line break, a backslash before "udc80".
  const auto line = ReadFailedLine(R"({"type":"T","item":"/\udcff\u000aü\\udc80"})");
  ASSERT_TRUE(line.ok());
  EXPECT_THAT(line->paths, ElementsAre("/\xff\nü\\udc80"));
}

TEST(FailedLineTest, WithoutANameOfItsOwn) {
  auto line = ReadFailedLine(R"({"type":"SkippedRows","items":2,"paths":["/a","/b\udc80"]})");
  ASSERT_TRUE(line.ok());
  EXPECT_THAT(line->paths, ElementsAre("/a", "/b\x80"));
  EXPECT_EQ(line->item, "/a");
  EXPECT_EQ(line->tries, 0U);
  line = ReadFailedLine(R"({"type":"T","item":"rank 7"})");
  ASSERT_TRUE(line.ok());
  EXPECT_THAT(line->paths, IsEmpty());
  EXPECT_EQ(line->item, "rank 7");
}

TEST(FailedLineTest, AnythingElseIsRefused) {
  for (const char* text : {"", "{", "[]", "7", R"({"type":7})", R"({"type":"T","item":"\ud800"})",
                           R"({"type":"T","item":"\udc)", "\\", R"({"type":"\ud)"}) {
    EXPECT_FALSE(ReadFailedLine(text).ok()) << text;
  }
  EXPECT_TRUE(ReadFailedLine(R"({"type":"T","items":-1,"attempt":1e9,"paths":{},"item":[]})").ok());
}

TEST(FailureTableTest, FailuresOfOneErrorAreOneRow) {
  FailureTable table;
  table.Add(Line("no number 1", 0));
  table.Add(Line("other", 1));
  table.Add(Line("no number 2", 2));
  table.Add(Line("no number 3", 2));
  table.Add(Line("no number 3", 3, "score.py:9"));
  const auto groups = table.Groups();
  ASSERT_EQ(groups.size(), 3U) << "the line of the script counts, digits do not";
  EXPECT_EQ(groups[0].items, 3U);
  EXPECT_EQ(groups[0].mini_batches, 2U);
  EXPECT_EQ(groups[0].first.message, "no number 1");
  EXPECT_EQ(groups[1].first.message, "other") << "the earlier among equals";
  EXPECT_EQ(table.items(), 5U);
}

TEST(FailureTableTest, KeepsNoMoreErrorsThanItMay) {
  FailureTable table;
  for (size_t i = 0; i < FailureTable::kMostErrors + 7; ++i) {
    table.Add(Line("x", 0, "score.py:" + std::to_string(i)));
  }
  table.Add(Line("x", 0, "score.py:0"));
  const auto groups = table.Groups();
  EXPECT_EQ(groups.size(), FailureTable::kMostErrors);
  EXPECT_EQ(table.other_items(), 7U);
  EXPECT_THAT(FailureText(groups, table, "/logs"), HasSubstr("7  of further errors"));
}

TEST(FailureTableTest, OfALongTextTheFrontIsKept) {
  FailureTable table;
  FailedLine line = Line(std::string(1 << 20, 'm'));
  line.item = line.log = std::string(1 << 20, 'i');
  line.paths.assign(1000, "/p");
  table.Add(line);
  const ErrorGroup group = table.Groups().front();
  EXPECT_LE(group.first.message.size() + group.first.item.size() + group.first.log.size(), 12288U);
  EXPECT_THAT(group.first.paths, IsEmpty());
}

TEST(FailureTextTable, IsReadAtAGlance) {
  FailureTable table;
  table.Add(Line("bad", 1));
  auto groups = table.Groups();
  groups[0].traceback = "Traceback (most recent call last)\n  File \"score.py\", line 6\n";
  EXPECT_EQ(FailureText(groups, table, "/out/logs"),
            "1 item failed; logs: /out/logs\n"
            "    ITEMS  TRIES  LINE        ERROR\n"
            "        1      3  score.py:6  ValueError: bad\n"
            "                              first: /data/1 (mini-batch 1, "
            "user/error/0/process000.txt)\n"
            "    Traceback (most recent call last)\n"
            "      File \"score.py\", line 6\n");
}

TEST(FailureTextTable, HostileTextIsHarmless) {
  FailureTable table;
  FailedLine line = Line("\x1b[2J", 1, "\x1b[1m.py:6\n");
  line.type = "\xff\n";
  line.item = "/\x1b]0;\x07\xff\n";
  line.log = "\x1b\n";
  table.Add(line);
  auto groups = table.Groups();
  groups[0].traceback = "\x1b[31m\r\n";
  const std::string text = FailureText(groups, table, "/\x1b");
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, Not(HasSubstr("\r")));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 5);
  const std::string told = FailureJson(groups, table, "/\xff");
  EXPECT_THAT(told, Not(HasSubstr("\x1b")));
  EXPECT_THAT(told, HasSubstr(R"("firstItem":"/\u001b]0;\u0007\udcff\u000a")"));
}

TEST(FailureJsonTest, HoldsEachError) {
  FailureTable table;
  table.Add(Line("bad", 1));
  const auto told = nlohmann::json::parse(FailureJson(table.Groups(), table, "/logs"));
  EXPECT_EQ(told["logs"], "/logs");
  EXPECT_EQ(told["items"], 1);
  EXPECT_EQ(told["errors"][0]["type"], "ValueError");
  EXPECT_EQ(told["errors"][0]["tries"], 3);
  EXPECT_EQ(told["errors"][0]["firstItem"], "/data/1");
  EXPECT_FALSE(told["errors"][0].contains("traceback"));
  EXPECT_EQ(nlohmann::json::parse(FailureJson({}, {}, "/logs"))["errors"].size(), 0U);
}

}  // namespace
}  // namespace parallelrun::cli
