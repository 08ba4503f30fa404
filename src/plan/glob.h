// Matches root-relative paths against a pattern. `*` is any run of characters within a name, `?`
// one character, `[a-z]` and `[!a-z]` one of (or none of) a set, and `**` as a whole name any
// number of folders, none included: `**/*.png` matches `x.png` and `a/b/x.png`. A pattern that ends
// with
// `/` means everything below. There is no escape: `[*]` is a star. A `[` without its `]` is itself.
// The empty pattern matches every path. Characters are UTF-8; any other byte is one character.
// Time is at most (pattern × path), never exponential. Immutable, thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace parallelrun::plan {

class Glob {
 public:
  explicit Glob(std::string_view pattern);

  // `path` has no leading, trailing or doubled '/'.
  bool Matches(std::string_view path) const;
  // False only when no path below `folder` can match, so that it need not be read.
  bool MayMatchBelow(std::string_view folder) const;

 private:
  std::vector<std::string> parts_;  // names of the pattern, "**" among them
};

}  // namespace parallelrun::plan
