// `parallelrun rerun OUT FLAG…`: the command of a run once more, from the folder where it was
// typed.
#pragma once

#include <string>
#include <vector>

namespace parallelrun::cli {

// Becomes that command, told on stderr; returns an exit status where that is not possible.
int Rerun(const std::string& target, const std::vector<std::string>& flags,
          const std::vector<std::string>& arguments);

// `command` with `flags` in place of the same flags in it, and without what says how it started
// (--resume and its like). What may be given several times (--set, --volume) is added. `arguments`,
// if there are any, take the place of the script's. Pure.
std::vector<std::string> RerunWords(const std::vector<std::string>& command,
                                    const std::vector<std::string>& flags,
                                    const std::vector<std::string>& arguments = {});

}  // namespace parallelrun::cli
