// docs/architecture.md shows some of the traces: as they are, word for word.
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "tests/support/source_folder.h"

namespace parallelrun::trace {
namespace {

std::string Whole(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(SourceFolder() + path).rdbuf();
  return text.str();
}

std::string WithoutEnd(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

// Below a line that is a link to a trace stands what is indented.
TEST(TracesInDocs, AreTheFilesWordForWord) {
  const std::regex link(R"(^\[`[a-z_/]+\.txt`\]\(\.\./(tests/traces/[a-z_/]+\.txt)\).*)");
  std::istringstream page(Whole("docs/architecture.md"));
  std::set<std::string> shown;
  std::string line;
  for (bool more = static_cast<bool>(std::getline(page, line)); more;) {
    std::smatch found;
    if (!std::regex_match(line, found, link)) {
      more = static_cast<bool>(std::getline(page, line));
      continue;
    }
    const std::string path = found[1];
    std::string block;
    while ((more = static_cast<bool>(std::getline(page, line)))) {
      if (!line.empty() && !line.starts_with("    ")) break;
      if (line.empty() && block.empty()) continue;
      block += (line.empty() ? "" : line.substr(4)) + "\n";
    }
    EXPECT_EQ(WithoutEnd(block), WithoutEnd(Whole(path)))
        << "docs/architecture.md shows another " << path << ": copy it there, indented by four";
    shown.insert(path);
  }
  EXPECT_GE(shown.size(), 3U);
}

}  // namespace
}  // namespace parallelrun::trace
