// The coordinator's last words are JSON of at most 4,096 bytes, whatever the texts in them.
#include "coordinator/last_words.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/disk_files.h"
#include "tests/support/sanitized.h"
#include "tests/support/temp_folder.h"

namespace parallelrun::coordinator {
namespace {

using nlohmann::json;

json Progress(const std::string& text, size_t errors) {
  json progress = {{"epoch", 3},
                   {"state", "Failed"},
                   {"miniBatches", {{"total", 10}, {"succeeded", 1}, {"failed", 9}}},
                   {"items", {{"succeeded", 1}, {"failed", 9}}},
                   {"rows", 7},
                   {"nodes", json::array()},
                   {"metrics", {{"accuracy", 1}}},
                   {"paused", text},
                   {"verdict", {{"outcome", "Failed"}, {"reason", "Test"}, {"message", text}}},
                   {"output", {{"path", "/out/" + text}, {"rows", 7}}}};
  for (size_t i = 0; i < 400; ++i) progress["nodes"].push_back({{"index", i}});
  progress["errors"] = json::array();
  for (size_t i = 0; i < errors; ++i) {
    progress["errors"].push_back(
        {{"kind", text}, {"message", text}, {"count", i}, {"log", text}, {"process", text}});
  }
  return progress;
}

std::string Repeat(const std::string& piece, size_t bytes) {
  std::string text;
  while (text.size() < bytes) text += piece;
  return text;
}

struct Size {
  size_t bytes;   // of each text
  size_t errors;  // of the progress
};

TEST(LastWordsTest, HostileTextsFit) {
  for (const std::string& piece :
       {std::string("a"), std::string("\""), std::string("\\"), std::string("\x01"),
        std::string("\0", 1), std::string("\xff"), std::string("ä"), std::string("\U0001F600"),
        std::string("\n"), std::string("\u2028")}) {
    for (const Size size : {Size{1, 5}, {100, 100}, {1000, 5}, {5000, 1}, {40'000, 0}}) {
      if (kSanitized && size.bytes > 1000) continue;
      const std::string text = Repeat(piece, size.bytes);
      const std::string said =
          Progress(text, size.errors).dump(-1, ' ', false, json::error_handler_t::replace);
      const std::string words = LastWordsJson(said, text);
      ASSERT_LE(words.size(), kMaxLastWords);
      const json parsed = json::parse(words, nullptr, false);
      ASSERT_TRUE(parsed.is_object()) << words;
      const json& progress = parsed["progress"];
      EXPECT_EQ(progress["state"], "Failed");
      EXPECT_EQ(progress["verdict"]["reason"], "Test");
      EXPECT_EQ(progress["miniBatches"]["failed"], 9);
      EXPECT_EQ(progress["rows"], 7);
      EXPECT_FALSE(progress.contains("nodes"));

      const std::string error = LastErrorJson(text);
      ASSERT_LE(error.size(), kMaxLastWords);
      EXPECT_TRUE(json::parse(error, nullptr, false)["error"].is_string());
    }
  }
}

TEST(LastWordsTest, ShortTextsStayAsTheyAre) {
  const json words = json::parse(LastWordsJson(Progress("why", 3).dump(), "drained by request"));
  EXPECT_EQ(words["ended"], "drained by request");
  EXPECT_EQ(words["progress"]["errors"].size(), 3U);
  EXPECT_EQ(words["progress"]["verdict"]["message"], "why");
  EXPECT_FALSE(json::parse(LastWordsJson("{}", "")).contains("ended"));
}

TEST(LastWordsTest, TheFirstErrorsAreKept) {
  const json words = json::parse(LastWordsJson(Progress(std::string(300, 'x'), 100).dump(), ""));
  const json& errors = words["progress"]["errors"];
  ASSERT_GE(errors.size(), 1U);
  EXPECT_EQ(errors[0]["count"], 0);
}

TEST(LastWordsTest, AreWrittenInPlace) {
  const TempFolder folder;
  folder.Write("log", std::string(9000, 'x'));
  std::filesystem::create_hard_link(folder.path("log"), folder.path("same"));
  LeaveLastWords(DiskFiles(), folder.path("log"), "{}");
  EXPECT_EQ(folder.Read("same"), "{}");  // the same file, not another one of its name
  LeaveLastWords(DiskFiles(), "", "{}");
  LeaveLastWords(DiskFiles(), folder.path("none/there"), "{}");
}

}  // namespace
}  // namespace parallelrun::coordinator
