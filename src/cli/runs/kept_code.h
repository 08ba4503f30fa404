// The code of a run whose own folder goes away, such as what Python has made of a function: a copy
// beside the ledger (docs/ledger.md), for the commands that come after the run. Blocking I/O.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace parallelrun::cli {

std::string KeptCodeFolder(const std::string& state_folder);

// Takes the place of what is kept there. `code`: the copy that is run.
Status KeepCode(const std::string& code, const std::string& state_folder);

// The words of a command that a program has typed, as a person types them later: without what tied
// the run to that program. `script` ("" for none) and `code` are those words as they are there;
// `kept` is where they are to be found, "" where they stay. Pure but for the current folder.
std::vector<std::string> WordsForPeople(const std::vector<std::string>& words,
                                        const std::string& script, const std::string& code,
                                        const std::string& kept);

}  // namespace parallelrun::cli
