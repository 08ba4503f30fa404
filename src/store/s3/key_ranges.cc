#include "store/s3/key_ranges.h"

#include <algorithm>
#include <utility>

namespace parallelrun::store::s3 {
namespace {

size_t BytesOf(const std::vector<ListedKey>& keys) {
  size_t bytes = 0;
  for (const ListedKey& key : keys) {
    bytes += sizeof(ListedKey) + key.key.capacity() + key.etag.capacity();
  }
  return bytes;
}

}  // namespace

KeyRanges::KeyRanges(std::string root, std::string after, const Limits& limits)
    : limits_(limits), borders_(std::move(root)) {
  ranges_.push_back({0, std::move(after), ""});
}

KeyRanges::Place KeyRanges::Find(uint64_t id) {
  return std::find_if(ranges_.begin(), ranges_.end(),
                      [&](const Range& range) { return range.id == id; });
}

std::optional<KeyRanges::Ask> KeyRanges::Next() {
  if (error_ || at_once_ >= limits_.at_once) return std::nullopt;
  size_t before = 0;
  for (Range& range : ranges_) {
    const bool idle = !range.asked && !range.over;
    // What the reader waits for comes first, and whatever it takes.
    if (idle && before == 0 && range.pages.empty()) return AskFor(range);
    if (!Together()) return std::nullopt;
    if (idle && HasRoom(before)) return AskFor(range);
    ++before;
  }
  return Together() ? Cut() : std::nullopt;
}

KeyRanges::Ask KeyRanges::AskFor(Range& range) {
  range.asked = true;
  ++at_once_;
  const bool ahead = &range != &ranges_.front() || !range.pages.empty();
  return {range.id, range.after, std::nullopt, ahead};
}

// The further behind a range is, the less may wait when it goes on: so those in front are never
// held up by what is read last.
bool KeyRanges::HasRoom(size_t before) const {
  const size_t most = 2 * limits_.at_once;
  const size_t share = limits_.bytes / most * (most - std::min(before, most));
  return held_ + (at_once_ + 1) * largest_ <= share;
}

std::optional<KeyRanges::Ask> KeyRanges::Cut() {
  if (ranges_.size() >= 2 * limits_.at_once || in_vain_ > came_ / 2) return std::nullopt;
  Place best = ranges_.end();
  std::optional<Borders::Advice> advice;
  size_t before = 0;
  for (Place range = ranges_.begin(); range != ranges_.end() && HasRoom(++before); ++range) {
    if (range->over) continue;
    auto here = borders_.For({range->first, range->last, range->after, range->end, range->before});
    if (!here || (advice && here->place >= advice->place)) continue;
    advice = std::move(here);
    best = range;
  }
  if (!advice) return std::nullopt;
  if (advice->folders) {
    borders_.FoldersAsked(*advice->folders);
    ++in_vain_;
    ++at_once_;
    return Ask{best->id, std::move(advice->key), std::move(advice->folders), true};
  }
  Range back{next_id_++, advice->key, std::move(best->end), advice->place};
  best->end = std::move(advice->key);
  return AskFor(*ranges_.insert(std::next(best), std::move(back)));
}

void KeyRanges::Came(const Ask& ask, ListPage page) {
  --at_once_;
  if (ask.folders) return borders_.FoldersCame(*ask.folders, page);
  ++came_;
  const Place range = Find(ask.range);
  if (range == ranges_.end()) return;  // it was passed over
  range->asked = false;
  range->over = !page.more;
  std::vector<ListedKey>& keys = page.keys;
  borders_.Learn(keys);
  if (!keys.empty()) {
    range->first = keys.front().key;
    range->last = keys.back().key;
  }
  // The next range begins where this one was cut, also after it was asked for.
  if (!range->end.empty() && !keys.empty() && keys.back().key >= range->end) {
    range->over = true;
    keys.erase(std::upper_bound(
                   keys.begin(), keys.end(), range->end,
                   [](const std::string& end, const ListedKey& key) { return end < key.key; }),
               keys.end());
    keys.shrink_to_fit();
  }
  if (keys.empty()) {
    ++in_vain_;
  } else {
    Keep(*range, std::move(keys));
  }
  DropEnded();
}

void KeyRanges::Keep(Range& range, std::vector<ListedKey> keys) {
  range.after = std::max(range.after, keys.back().key);
  const size_t bytes = BytesOf(keys);
  held_ += bytes;
  largest_ = std::max(largest_, bytes);
  range.pages.push_back({std::move(keys), bytes});
}

// What was asked for ahead is asked for again when the reader waits for it: who lists page by page
// would not have met this error.
void KeyRanges::Failed(const Ask& ask, const Error& error) {
  --at_once_;
  if (ask.folders) return borders_.FoldersRefused();
  const Place range = Find(ask.range);
  if (range == ranges_.end()) return;
  range->asked = false;
  if (ask.ahead) {
    apart_ = true;
  } else {
    error_ = error;
  }
}

std::optional<std::vector<ListedKey>> KeyRanges::Take() {
  if (ranges_.empty() || ranges_.front().pages.empty()) return std::nullopt;
  Range& first = ranges_.front();
  Page page = std::move(first.pages.front());
  first.pages.pop_front();
  held_ -= page.bytes;
  borders_.ForgetBefore(page.keys.back().key);
  DropEnded();
  return std::move(page.keys);
}

void KeyRanges::PassOver(const std::string& upto) {
  while (!ranges_.empty()) {
    Range& first = ranges_.front();
    while (!first.pages.empty() && first.pages.front().keys.back().key <= upto) {
      held_ -= first.pages.front().bytes;
      first.pages.pop_front();
    }
    const bool all = !first.end.empty() && first.end <= upto && first.pages.empty();
    if (!all) {
      first.after = std::max(first.after, upto);
      break;
    }
    ranges_.pop_front();
  }
  DropEnded();
}

// The first range is the one whose pages are read.
void KeyRanges::DropEnded() {
  while (!ranges_.empty() && ranges_.front().over && ranges_.front().pages.empty()) {
    ranges_.pop_front();
  }
}

}  // namespace parallelrun::store::s3
