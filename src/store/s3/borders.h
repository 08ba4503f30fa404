// Where the keys of a bucket may be cut into ranges that are listed at the same time: guessed from
// the pages that came, and from the folders that a server told. A guess may be wrong, so that a
// range holds nothing, or little; keys are listed neither twice nor never for it. Pure; not
// thread-safe.
#pragma once

#include <bitset>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "store/s3/answers.h"

namespace parallelrun::store::s3 {

// Behind all keys of the folder `folder`, which ends in '/', and before what comes then.
std::string EndOfFolder(std::string_view folder);

// A range that is listed from front to back.
struct Walk {
  std::string_view first, last;  // keys of the page that came last: both behind the root
  std::string_view after;        // the next page begins behind it
  std::string_view end;          // the last key that may be in it; "": none is too large
  // Where the range has no end: it is cut at a place before this one in its keys, so that each cut
  // reaches ten times as far as the one before, or so.
  size_t before = std::string::npos;
};

class Borders {
 public:
  // `root`: what all keys begin with.
  explicit Borders(std::string root) : root_(std::move(root)) {}

  void Learn(const std::vector<ListedKey>& page);

  struct Advice {
    size_t place = 0;  // in a key: the lower it is, the larger is what it is about
    // The range may be cut behind this key. Where `folders` is set: it is worth to ask for the
    // folders of `folders` behind this key first (FoldersCame).
    std::string key;
    std::optional<std::string> folders{};
  };
  std::optional<Advice> For(const Walk& walk) const;

  void FoldersAsked(const std::string& parent) { asked_[parent] = kAll; }
  // One answer: folders, which end in '/', and whatever keys are beside them.
  void FoldersCame(const std::string& parent, const ListPage& page);
  // The server does not tell any, or its rights do not reach so far.
  void FoldersRefused() { refused_ = true; }
  // What lies before this key is not needed any more.
  void ForgetBefore(const std::string& key);

 private:
  static constexpr size_t kMostFolders = 4000;
  static constexpr char kAll[] = "";

  std::optional<Advice> KnownFolder(const Walk& walk) const;
  std::optional<Advice> Guessed(const Walk& walk, size_t differs, size_t from) const;
  std::string CutAt(const Walk& walk, size_t differs, size_t place) const;
  std::string Above(char c) const;

  const std::string root_;
  // In which neighbours differ, where they do first: digits of numbers, letters of hashes. ASCII,
  // so that a cut is no half of a character.
  std::bitset<128> characters_;
  std::set<std::string> folders_;
  std::map<std::string, std::string> asked_;  // by parent: up to which key its folders are known
  bool refused_ = false;
};

}  // namespace parallelrun::store::s3
