#include "cli/run/continue_command.h"

#include <algorithm>

namespace parallelrun::cli {
namespace {

// Also as --overwrite=true.
bool SaysHowToStart(const std::string& word) {
  const std::string flag = word.substr(0, word.find('='));
  return flag == "--overwrite" || flag == "--resume" || flag == "--retry-failed";
}

}  // namespace

std::string ForShell(const std::string& word) {
  if (!word.empty() && word.find_first_of(" \t\n'\"\\$&|;<>()*?[]#~`!{}") == std::string::npos) {
    return word;
  }
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string ContinueCommand(const std::vector<std::string>& words,
                            const std::vector<std::string>& with_value, const std::string& flag) {
  std::vector<std::string> again;
  size_t at = 0;
  // What stands behind "--" is the script's.
  for (; at < words.size() && words[at] != "--"; ++at) {
    if (SaysHowToStart(words[at])) continue;
    again.push_back(words[at]);
    const bool value =
        std::find(with_value.begin(), with_value.end(), words[at]) != with_value.end();
    if (value && at + 1 < words.size()) again.push_back(words[++at]);
  }
  again.push_back(flag);
  again.insert(again.end(), words.begin() + static_cast<std::ptrdiff_t>(at), words.end());
  std::string line;
  for (const std::string& word : again) line += (line.empty() ? "" : " ") + ForShell(word);
  return line;
}

}  // namespace parallelrun::cli
