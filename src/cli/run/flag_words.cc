#include "cli/run/flag_words.h"

#include <algorithm>

namespace parallelrun::cli {
namespace {

// Whether `word` can be meant for the flag in front of it.
bool BelongsTo(const std::string& flag, const std::string& word) {
  const size_t equals = word.find('=');
  if (equals == std::string::npos || equals == 0) return false;
  if (flag == "--set") return word.starts_with("spec.") || word.starts_with("metadata.");
  return std::all_of(
             word.begin(), word.begin() + static_cast<std::ptrdiff_t>(equals),
             [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; }) &&
         word.front() != '-';
}

}  // namespace

std::vector<std::string> EachWithItsFlag(const std::vector<std::string>& words) {
  std::vector<std::string> out;
  std::string flag;       // that the next word may belong to
  bool has_word = false;  // it has its first, whatever that looks like
  for (const std::string& word : words) {
    const std::string name = word.substr(0, word.find('='));
    if ((flag.empty() || has_word) && (name == "--volume" || name == "--set")) {
      flag = name;
      has_word = name.size() < word.size();
    } else if (!flag.empty() && !has_word) {
      has_word = true;
    } else if (!flag.empty() && BelongsTo(flag, word)) {
      out.push_back(flag);
    } else {
      flag.clear();
    }
    out.push_back(word);
  }
  return out;
}

}  // namespace parallelrun::cli
