#include "cli/run/ignore_file.h"

#include <string>
#include <utility>

namespace parallelrun::cli {
namespace {

// git's escapes, as a glob of ours has them: [*] for \*.
std::string Unescaped(std::string_view text) {
  std::string glob;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      glob += text[i];
      continue;
    }
    const char next = text[++i];
    const bool special = next == '*' || next == '?' || next == '[';
    glob += special ? std::string{'[', next, ']'} : std::string(1, next);
  }
  return glob;
}

void TrimEnd(std::string_view& line) {
  while (!line.empty() && (line.back() == ' ' || line.back() == '\t' || line.back() == '\r')) {
    if (line.size() > 1 && line[line.size() - 2] == '\\')
      return;  // an escaped one belongs to the name
    line.remove_suffix(1);
  }
}

}  // namespace

IgnoreFile::IgnoreFile(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    TrimEnd(line);
    if (line.empty() || line.front() == '#') continue;
    const bool back = line.front() == '!';
    if (back) line.remove_prefix(1);
    const bool folders_only = line.ends_with('/');
    if (folders_only) line.remove_suffix(1);
    if (line.empty()) continue;
    // A slash at the front or within ties the pattern to this folder.
    const bool tied = line.find('/') != std::string_view::npos;
    if (line.front() == '/') line.remove_prefix(1);
    if (line.empty()) continue;
    std::string glob = Unescaped(line);
    if (glob.ends_with("/**")) glob += "/*";  // all below, and not the folder itself
    rules_.push_back({plan::Glob(tied ? glob : "**/" + glob), !back, folders_only});
  }
}

std::optional<bool> IgnoreFile::LeavesOut(std::string_view path, bool folder) const {
  for (auto rule = rules_.rbegin(); rule != rules_.rend(); ++rule) {
    if (rule->folders_only && !folder) continue;
    if (rule->glob.Matches(path)) return rule->leaves_out;
  }
  return std::nullopt;
}

}  // namespace parallelrun::cli
