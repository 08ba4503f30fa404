// What .gitignore and .amlignore say: names that are no code. Their language is git's. Pure,
// immutable.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "plan/glob.h"

namespace parallelrun::cli {

class IgnoreFile {
 public:
  // Lines that are no pattern are passed over, as git does.
  explicit IgnoreFile(std::string_view text);

  // Whether `path`, relative to the file's own folder, is left out; nullopt: nothing is said of it.
  // The last line that matches decides; `!` takes it back.
  std::optional<bool> LeavesOut(std::string_view path, bool folder) const;

 private:
  struct Rule {
    plan::Glob glob;
    bool leaves_out;
    bool folders_only;
  };
  std::vector<Rule> rules_;
};

}  // namespace parallelrun::cli
