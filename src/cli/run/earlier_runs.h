// What runs have left in a folder that is searched for code: the second run of a script was refused
// for the rows and logs of the first one, or copied them to every node. Looks at names only.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace parallelrun::cli {

// The state folder of a run on this machine, whatever it is called.
bool IsState(const std::filesystem::path& folder);

// Of the names that lie in `folder`, those that a run has left: its state with the logs beside it,
// a folder with a run in it and no module, and the file of `--output FILE.csv` with its index.
std::set<std::string> LeftByRuns(const std::filesystem::path& folder,
                                 const std::vector<std::filesystem::path>& found);

}  // namespace parallelrun::cli
