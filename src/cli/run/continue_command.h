// The command that goes on with a run: as it was typed, with another flag in place of what a run
// can start with. Pure.
#pragma once

#include <string>
#include <vector>

namespace parallelrun::cli {

// `words` are the command as main got it; `with_value` are the flags that take the next word as
// their value, whatever it looks like; `flag` is --resume or --retry-failed. Quoted for a shell.
std::string ContinueCommand(const std::vector<std::string>& words,
                            const std::vector<std::string>& with_value, const std::string& flag);

// One word, quoted where a shell would not leave it as it is.
std::string ForShell(const std::string& word);

}  // namespace parallelrun::cli
