// The command that continues a run: as it was typed, with --resume in place of what a run can start
// with. Pure.
#pragma once

#include <string>
#include <vector>

namespace parallelrun {

// `words` are the command as main got it; `with_value` are the flags that take the next word as
// their value, whatever it looks like. Quoted for a shell.
std::string ContinueCommand(const std::vector<std::string>& words,
                            const std::vector<std::string>& with_value);

}  // namespace parallelrun
