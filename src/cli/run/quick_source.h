// What one word of `--input` names: a folder, one file, or what a glob matches, here or in a store.
//
// Only what was typed can be a pattern: the current folder, and what exists under the name that
// was typed, are what they are called. A folder "[DE]" taken for a pattern means "D" and "E", and
// gives the rows of other files without a word.
#pragma once

#include <optional>
#include <string>

#include "base/error.h"

namespace parallelrun::cli {

struct QuickSource {
  std::string folder;   // absolute; of a store its URL
  std::string path;     // of the one file in it; "": a folder
  std::string pattern;  // of a folder's files; "": all
  bool in_store = false;
  bool operator==(const QuickSource&) const = default;
};

bool HasWildcard(const std::string& text);

// `pattern` is that of --pattern, for a word that names a folder. Looks at names of this machine,
// and asks no store.
QuickSource SourceOf(const std::string& word, const std::string& pattern);

// A URL that may be one object or a prefix, by its words alone: a key, no slash at its end.
bool MayBeOneObject(const std::string& url);
// Asks the store whether it is one object (plan/object_or_prefix.h); nothing where it is none. What
// keeps it from knowing is told by whoever lists: nobody may be allowed to ask for one that is not
// there.
Result<std::optional<QuickSource>> OneObject(const std::string& url);

}  // namespace parallelrun::cli
