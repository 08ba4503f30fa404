// `parallelrun validate`: every problem of every job file, and what is still to be filled in.
#pragma once

#include <string>
#include <vector>

namespace parallelrun::cli {

// Prints the problems to stderr, `FILE: ok` to stdout; returns the exit status. Reads the files
// alone: nothing that they name is looked at.
int ValidateFiles(const std::vector<std::string>& files, bool cluster);

}  // namespace parallelrun::cli
