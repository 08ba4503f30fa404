// Which pages of a listing are asked for next, where several are at the same time, and in which
// order they are read: decisions alone, while Listing asks. Ranges of keys stand in their order.
// The pages of the first one are read as they come, those of the others wait for it; where no range
// is left that nobody is at, one is cut in two (Borders). So the keys that are read, and their
// order, are the same whatever is asked at once and whatever is answered first.
//
// The first pages of a listing, and all after a request of a later range has failed, are asked for
// one at a time: a small listing costs no request more, and an error is told where it is met by
// whoever lists so. At most every third request is in vain.
//
// Pure; not thread-safe. Sizes in bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "store/s3/answers.h"
#include "store/s3/borders.h"

namespace parallelrun::store::s3 {

class KeyRanges {
 public:
  struct Limits {
    size_t at_once = 16;              // requests
    size_t alone = 4;                 // pages, before several are asked for at once
    size_t bytes = size_t{32} << 20;  // of pages that wait to be read, and are on their way
  };
  struct Ask {
    uint64_t range = 0;
    std::string after;                     // a page of keys behind this one; "" at the begin
    std::optional<std::string> folders{};  // only the folders in this one, which ends in '/'
    bool ahead = false;                    // the reader does not wait for it yet
  };

  // Keys that begin with `root`, behind `after`; "": all.
  KeyRanges(std::string root, std::string after, const Limits& limits);

  // What is to be asked for now, beside what is asked for already. Its answer, a page in the order
  // of its keys, all of them behind `after`, or why there is none.
  std::optional<Ask> Next();
  void Came(const Ask& ask, ListPage page);
  void Failed(const Ask& ask, const Error& error);

  // The reader's: the keys that come next; nothing where they have not come, or there are none.
  std::optional<std::vector<ListedKey>> Take();
  // Up to this key nothing more is wanted.
  void PassOver(const std::string& upto);
  bool over() const { return ranges_.empty(); }
  // Why the keys that come next never will.
  const std::optional<Error>& error() const { return error_; }

  // Whether several are asked for at once.
  bool Together() const { return came_ >= limits_.alone && !apart_; }
  size_t held() const { return held_; }

 private:
  struct Page {
    std::vector<ListedKey> keys;
    size_t bytes = 0;
  };
  struct Range {
    uint64_t id = 0;
    std::string after;
    std::string end;  // as Walk has it, as `before`
    size_t before = std::string::npos;
    std::string first{}, last{};  // likewise
    std::deque<Page> pages{};     // not read yet
    bool asked = false;
    bool over = false;  // all of its pages have come
  };
  using Place = std::list<Range>::iterator;

  Place Find(uint64_t id);
  Ask AskFor(Range& range);
  std::optional<Ask> Cut();
  bool HasRoom(size_t before) const;
  void Keep(Range& range, std::vector<ListedKey> keys);
  void DropEnded();

  const Limits limits_;
  Borders borders_;
  std::list<Range> ranges_;
  uint64_t next_id_ = 1;
  size_t came_ = 0;     // pages
  size_t in_vain_ = 0;  // requests that brought no keys
  size_t at_once_ = 0;  // requests
  size_t held_ = 0;
  size_t largest_ = 0;  // page so far
  bool apart_ = false;
  std::optional<Error> error_;
};

}  // namespace parallelrun::store::s3
