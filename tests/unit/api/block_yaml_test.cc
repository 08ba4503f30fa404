#include "api/block_yaml.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "api/document.h"

namespace parallelrun::api {
namespace {

nlohmann::json ReadBack(const std::string& yaml) {
  const Document document = ReadForeignDocument(yaml);
  EXPECT_TRUE(document.problems.empty()) << yaml;
  return document.job.ToJson();
}

// JSON's quotes do for all but the delete character, which no YAML file may hold.
TEST(QuotedYaml, IsReadBackUnchanged) {
  const std::vector<std::string> texts = {
      "plain",  "off",  "1e3",  "",   "a: b",    "a #b",    "]",
      ", ",     "a\nb", "\r\n", "\t", "\x01\b",  "a\x7F b", "\u0085\u2028",
      "\uFEFF", "😀 ü",  "\"\\", "{}", "${x} %y", "'"};
  const nlohmann::json all = texts;
  EXPECT_EQ(ReadBack("k: " + QuotedYaml(texts) + "\n")["k"], all);
  for (const std::string& text : texts) {
    const std::string yaml =
        "{k: " + QuotedYaml(text) + ", " + QuotedYaml(text + "x") + ": " + YamlText(text) + "}";
    EXPECT_EQ(ReadBack(yaml), (nlohmann::json{{"k", text}, {text + "x", text}}));
  }
  EXPECT_EQ(QuotedYaml(std::vector<std::string>()), "[]");
}

TEST(QuotedYaml, BytesThatAreNoUtf8AreReplaced) {
  EXPECT_EQ(ReadBack("k: " + QuotedYaml("a\xFF\x7F b"))["k"], "a\uFFFD\x7F b");
}

}  // namespace
}  // namespace parallelrun::api
