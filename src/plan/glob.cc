#include "plan/glob.h"

#include "plan/utf8.h"

namespace parallelrun::plan {
namespace {

constexpr std::string_view kAnyFolders = "**";

// Takes the first name off `path`; false when there is none.
bool TakeName(std::string_view& path, std::string_view& name) {
  if (path.empty()) return false;
  const size_t slash = path.find('/');
  name = path.substr(0, slash);
  path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
  return true;
}

// Where the set that opens at pattern[pos] closes, or npos. A `]` that comes first is a member.
size_t SetEnd(std::string_view pattern, size_t pos) {
  ++pos;
  if (pos < pattern.size() && (pattern[pos] == '!' || pattern[pos] == '^')) ++pos;
  return pos < pattern.size() ? pattern.find(']', pos + 1) : std::string_view::npos;
}

bool InSet(std::string_view set, char32_t character) {
  const bool negated = !set.empty() && (set[0] == '!' || set[0] == '^');
  size_t pos = negated ? 1 : 0;
  bool found = false;
  while (pos < set.size()) {
    const char32_t low = NextCharacter(set, pos);
    char32_t high = low;
    if (pos + 1 < set.size() && set[pos] == '-') {
      ++pos;
      high = NextCharacter(set, pos);
    }
    found = found || (low <= character && character <= high);
  }
  return found != negated;
}

// Whether the pattern's element at `pos`, not a star, takes `character`; moves `pos` behind it.
bool TakesCharacter(std::string_view pattern, size_t& pos, char32_t character) {
  if (pattern[pos] == '?') return ++pos, true;
  if (pattern[pos] == '[') {
    const size_t end = SetEnd(pattern, pos);
    if (end != std::string_view::npos) {
      const std::string_view set = pattern.substr(pos + 1, end - pos - 1);
      pos = end + 1;
      return InSet(set, character);
    }
  }
  return NextCharacter(pattern, pos) == character;
}

// One name against one part. When the rest fails, only the last star ever needs to take more:
// whatever an earlier one could take, the last one can take as well.
bool MatchesName(std::string_view pattern, std::string_view name) {
  size_t at = 0;
  size_t pos = 0;
  size_t after_star = std::string_view::npos;
  size_t star_pos = 0;
  while (pos < name.size()) {
    if (at < pattern.size() && pattern[at] == '*') {
      after_star = ++at;
      star_pos = pos;
      continue;
    }
    size_t next = pos;
    const char32_t character = NextCharacter(name, next);
    if (at < pattern.size() && TakesCharacter(pattern, at, character)) {
      pos = next;
      continue;
    }
    if (after_star == std::string_view::npos) return false;
    NextCharacter(name, star_pos);
    at = after_star;
    pos = star_pos;
  }
  while (at < pattern.size() && pattern[at] == '*') ++at;
  return at == pattern.size();
}

}  // namespace

Glob::Glob(std::string_view pattern) {
  const bool below = pattern.empty() || pattern.back() == '/';
  std::string_view name;
  while (TakeName(pattern, name)) {
    if (!name.empty() && name != ".") parts_.emplace_back(name);
  }
  if (below) parts_.emplace_back(kAnyFolders);
}

bool Glob::Matches(std::string_view path) const {
  // As in MatchesName, with names for characters and `**` for the star.
  size_t at = 0;
  size_t after_star = 0;  // 0: no star met, for it stands behind one
  std::string_view star_rest;
  std::string_view name;
  while (!path.empty()) {
    if (at < parts_.size() && parts_[at] == kAnyFolders) {
      after_star = ++at;
      star_rest = path;
      continue;
    }
    std::string_view rest = path;
    TakeName(rest, name);
    if (at < parts_.size() && MatchesName(parts_[at], name)) {
      ++at;
      path = rest;
      continue;
    }
    if (after_star == 0) return false;
    TakeName(star_rest, name);
    at = after_star;
    path = star_rest;
  }
  while (at < parts_.size() && parts_[at] == kAnyFolders) ++at;
  return at == parts_.size();
}

bool Glob::MayMatchBelow(std::string_view folder) const {
  size_t at = 0;
  std::string_view name;
  while (TakeName(folder, name)) {
    if (at == parts_.size()) return false;
    if (parts_[at] == kAnyFolders) return true;
    if (!MatchesName(parts_[at++], name)) return false;
  }
  return at < parts_.size();
}

}  // namespace parallelrun::plan
