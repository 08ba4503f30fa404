// Every reason has an entry, is used, and stands in docs/messages.md; none is put in as plain text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "reasons/entries.h"
#include "reasons/page.h"
#include "tests/support/source_folder.h"

namespace parallelrun::reasons {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;

std::string TextOf(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The sources of the product, but for this room, by path.
const std::map<std::string, std::string>& Sources() {
  static const std::map<std::string, std::string> kSources = [] {
    std::map<std::string, std::string> sources;
    for (const char* root : {"src", "operator", "worker-image/python"}) {
      for (const auto& entry : fs::recursive_directory_iterator(SourceFolder() + root)) {
        const std::string path = entry.path().string();
        const std::string kind = entry.path().extension().string();
        if (kind != ".cc" && kind != ".h" && kind != ".py") continue;
        if (path.find("/src/reasons/") == std::string::npos) sources[path] = TextOf(path);
      }
    }
    return sources;
  }();
  return kSources;
}

TEST(Reasons, EachHasOneEntryAndStandsInItsOrder) {
  std::vector<std::string_view> explained;
  for (const Section& section : Sections()) {
    for (const Entry& entry : section.entries) explained.push_back(entry.reason.word());
  }
  EXPECT_THAT(explained, ElementsAreArray(kWords));
  EXPECT_EQ(std::set(explained.begin(), explained.end()).size(), explained.size());
}

TEST(Reasons, EachEntrySaysWhereWhatAndWhatToDo) {
  for (const Section& section : Sections()) {
    EXPECT_FALSE(section.about.empty());
    for (const Entry& entry : section.entries) {
      EXPECT_NE(entry.places, 0) << entry.reason.word();
      for (const std::string_view text : {entry.happened, entry.to_do}) {
        EXPECT_TRUE(text.ends_with('.')) << entry.reason.word() << ": " << text;
        // It goes into a table, and onto terminals.
        EXPECT_EQ(text.find_first_of("|\n"), std::string_view::npos) << entry.reason.word();
      }
    }
  }
}

TEST(Reasons, EachIsUsed) {
  for (const std::string_view word : kWords) {
    const std::string literal = '"' + std::string(word) + '"';
    bool used = false;
    for (const auto& [path, text] : Sources()) used |= text.find(literal) != std::string::npos;
    EXPECT_TRUE(used) << literal;
  }
}

// Whether, behind a `place` in the code and before the next `end`, a word stands in quotes that is
// no Reason's. The code is without spaces and line ends.
bool SaysAPlainWord(const std::string& code, const std::string& place, char end) {
  for (size_t at = 0; (at = code.find(place, at)) != std::string::npos;) {
    at += place.size();
    if (code[at] == '=') continue;  // it is compared
    const size_t stop = std::min(code.find(end, at), code.size());
    for (size_t quote = at; (quote = code.find('"', quote)) < stop; ++quote) {
      const bool word = std::isupper(static_cast<unsigned char>(code[quote + 1])) != 0;
      if (word && !std::string_view(code).substr(0, quote).ends_with("Reason(")) return true;
    }
  }
  return false;
}

// A condition, an event and a verdict take a Reason, which the compiler checks. Where a word of
// Kubernetes, or of another program, may stand too, it is a string: ours come into it as a Reason.
TEST(Reasons, NoneIsPutInAsPlainText) {
  std::vector<std::string> found;
  size_t read = 0;
  for (auto [path, code] : Sources()) {
    if (path.ends_with(".py")) continue;  // tests/python/test_kinds.py
    ++read;
    std::erase_if(code, [](unsigned char c) { return std::isspace(c) != 0; });
    bool plain = SaysAPlainWord(code, ".reason=", ';') ||
                 SaysAPlainWord(code, "\"reason\",", ',') || SaysAPlainWord(code, "Said{", '}') ||
                 code.find("Outcome::kFailed,\"") != std::string::npos;
    for (const char* room : {"/src/job/", "/src/coordinator/", "/src/agent/"}) {
      if (path.find(room) == std::string::npos) continue;
      plain |= SaysAPlainWord(code, ".kind=", ';') || SaysAPlainWord(code, "\"kind\",", ',');
    }
    if (plain) found.push_back(path);
  }
  EXPECT_GT(read, 300U);
  EXPECT_THAT(found, IsEmpty());
}

TEST(Reasons, APlainWordIsSeen) {
  EXPECT_TRUE(SaysAPlainWord("x.kind=a?\"RunTimeout\":b;", ".kind=", ';'));
  EXPECT_TRUE(SaysAPlainWord("{\"kind\",\"Misfit\"}", "\"kind\",", ','));
  EXPECT_FALSE(SaysAPlainWord("x.kind=Reason(\"RunTimeout\");f(\"A\");", ".kind=", ';'));
  EXPECT_FALSE(SaysAPlainWord("x.kind==\"RunTimeout\";", ".kind=", ';'));
}

TEST(Reasons, ThePageIsCurrent) {
  EXPECT_TRUE(TextOf(SourceFolder() + "docs/messages.md") == PageText()) << "run script/messages";
}

TEST(Reasons, AreFoundWhateverTheCase) {
  ASSERT_NE(Find("nodebackoff"), nullptr);
  EXPECT_EQ(Find("nodebackoff")->reason, "NodeBackOff");
  EXPECT_EQ(PlacesText(Find("NodeBackOff")->places), "condition, event");
  EXPECT_EQ(Find("NodeBackOf"), nullptr);
  EXPECT_EQ(Find(""), nullptr);
}

TEST(Reasons, AMeaningIsForAnyPlaceThatKnowsNoMarkdown) {
  EXPECT_EQ(Meaning("Suspended"), "spec.suspend is true, and no pod of the job is left.");
  EXPECT_EQ(Meaning("NodeBackOf"), "");
}

}  // namespace
}  // namespace parallelrun::reasons
