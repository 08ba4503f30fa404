#include "store/s3/borders.h"

#include <algorithm>
#include <iterator>

namespace parallelrun::store::s3 {
namespace {

// The last character there is: behind "a/" and it there is nothing in the folder "a" worth a
// listing.
constexpr std::string_view kLastCharacter = "\xf4\x8f\xbf\xbf";

// Where two keys differ first; the length of the shorter one if it is the begin of the other.
size_t FirstDifference(std::string_view a, std::string_view b) {
  const size_t most = std::min(a.size(), b.size());
  size_t at = 0;
  while (at < most && a[at] == b[at]) ++at;
  return at;
}

bool IsAscii(char c) { return static_cast<unsigned char>(c) < 128; }

bool IsWithin(const Walk& walk, std::string_view key) {
  return key > walk.last && key > walk.after && (walk.end.empty() || key < walk.end);
}

}  // namespace

std::string EndOfFolder(std::string_view folder) {
  return std::string(folder).append(kLastCharacter);
}

void Borders::Learn(const std::vector<ListedKey>& page) {
  for (size_t i = 1; i < page.size(); ++i) {
    const std::string& one = page[i - 1].key;
    const std::string& next = page[i].key;
    const size_t differs = FirstDifference(one, next);
    for (const std::string* key : {&one, &next}) {
      if (differs == key->size() || !IsAscii((*key)[differs]) || (*key)[differs] == '/') continue;
      characters_.set(static_cast<unsigned char>((*key)[differs]));
    }
  }
}

// Those that were seen and are larger, in their order.
std::string Borders::Above(char c) const {
  std::string above;
  for (size_t next = static_cast<unsigned char>(c) + size_t{1}; next < characters_.size(); ++next) {
    if (characters_.test(next)) above += static_cast<char>(next);
  }
  return above;
}

std::optional<Borders::Advice> Borders::For(const Walk& walk) const {
  if (walk.last.empty()) return std::nullopt;
  if (auto known = KnownFolder(walk)) return known;
  const size_t differs = FirstDifference(walk.first, walk.last);
  size_t from = root_.size();
  if (!walk.end.empty()) from = std::max(from, FirstDifference(walk.last, walk.end));
  // A page that lies in one folder as a whole: how many such there are beside it can be asked.
  size_t behind_folder = root_.size();
  for (size_t slash = walk.last.find('/', root_.size()); slash < differs;
       slash = walk.last.find('/', slash + 1)) {
    std::string parent(walk.last.substr(0, behind_folder));
    behind_folder = slash + 1;
    if (slash < from || refused_ || folders_.size() >= kMostFolders) continue;
    const auto asked = asked_.find(parent);
    std::string end = EndOfFolder(walk.last.substr(0, behind_folder));
    const bool known = asked != asked_.end() && (asked->second == kAll || end <= asked->second);
    if (!known && IsWithin(walk, end)) {
      return Advice{parent.size(), std::move(end), std::move(parent)};
    }
  }
  return Guessed(walk, differs, std::max(from, behind_folder));
}

// The middle one of those in the range, but for as many at either end as a page holds.
std::optional<Borders::Advice> Borders::KnownFolder(const Walk& walk) const {
  auto begin = folders_.upper_bound(std::string(std::max(walk.after, walk.last)));
  auto end = walk.end.empty() ? folders_.end() : folders_.lower_bound(std::string(walk.end));
  if (!walk.end.empty() && walk.end <= std::max(walk.after, walk.last)) return std::nullopt;
  const auto in_page = std::distance(folders_.upper_bound(std::string(walk.first)),
                                     folders_.upper_bound(std::string(walk.last)));
  const auto there = std::distance(begin, end);
  if (there <= 2 * in_page) return std::nullopt;
  std::advance(begin, there / 2);
  return Advice{FirstDifference(walk.last, *begin), *begin};
}

// Of a folder without folders. Up to a known end the largest halves come first. Without one it is
// felt for from near to far, for what lies behind it is asked in vain.
std::optional<Borders::Advice> Borders::Guessed(const Walk& walk, size_t differs,
                                                size_t from) const {
  const size_t until = std::min(differs + 1, walk.last.size());
  if (walk.end.empty()) {
    for (size_t place = std::min(walk.before, until); place > from; --place) {
      std::string key = CutAt(walk, differs, place - 1);
      if (!key.empty()) return Advice{place - 1, std::move(key)};
    }
  }
  for (size_t place = from; place < until; ++place) {
    std::string key = CutAt(walk, differs, place);
    if (!key.empty()) return Advice{place, std::move(key)};
  }
  return std::nullopt;
}

// The last key with another character at that place; "" where none is within the range, and a
// page's keys behind the last one.
std::string Borders::CutAt(const Walk& walk, size_t differs, size_t place) const {
  const char at = walk.last[place];
  if (!IsAscii(at) || !characters_.test(static_cast<unsigned char>(at))) return "";
  std::string above = Above(at);
  size_t near = 1;  // the step to the next character may be a small one
  if (place == differs && place < walk.first.size()) {
    near = Above(walk.first[place]).size() - above.size() - 1;
  }
  above.erase(0, near);
  const std::string_view front = walk.last.substr(0, place);
  while (!above.empty() && !IsWithin(walk, std::string(front) + above.back())) above.pop_back();
  if (above.empty()) return "";
  std::string key = std::string(front) + above[above.size() / 2];
  return IsWithin(walk, key) ? key : "";
}

void Borders::FoldersCame(const std::string& parent, const ListPage& page) {
  for (const std::string& folder : page.folders) {
    if (folder.starts_with(parent)) folders_.insert(folder);
  }
  if (!page.more) return;
  std::string& upto = asked_[parent];
  if (!page.keys.empty()) upto = page.keys.back().key;
  if (!page.folders.empty()) upto = std::max(upto, EndOfFolder(page.folders.back()));
}

void Borders::ForgetBefore(const std::string& key) {
  folders_.erase(folders_.begin(), folders_.lower_bound(key));
}

}  // namespace parallelrun::store::s3
