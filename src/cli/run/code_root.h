// Which folder is the code of a script that is run without a job file: its project.
#pragma once

#include <string>

#include "base/error.h"

namespace parallelrun::cli {

struct CodeRoot {
  std::string folder;  // absolute
  std::string script;  // below it
};

// The nearest folder at or above the script's that holds pyproject.toml, .git or a job file; else
// the script's own. The home folder, / and folders as /tmp, where everybody may put a marker, are
// no project, nor is what lies above them. `code` (of --code) is taken as it is, and must hold the
// script: kInvalid where it does not. `home` may be empty. Reads names, and job files' beginnings.
Result<CodeRoot> FindCodeRoot(const std::string& script, const std::string& code,
                              const std::string& home);

}  // namespace parallelrun::cli
