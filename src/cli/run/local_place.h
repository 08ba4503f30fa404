// A place of this machine, as people type it. Any text can be a path: a URL taken for one became a
// folder "gs:" in the current folder, with the rows in it, and the run said Succeeded.
#pragma once

#include <string>

#include "base/error.h"

namespace parallelrun::cli {

// kInvalid where `word` is a URL, which is not shown, for it may hold a password. `told` names the
// word to people, `instead` says what to write. Pure.
Status MustBePath(const std::string& told, const std::string& word, const std::string& instead);

}  // namespace parallelrun::cli
