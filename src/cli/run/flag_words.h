// Flags that take several words. Pure.
#pragma once

#include <string>
#include <vector>

namespace parallelrun::cli {

// The words of a command (its own name and what stands behind "--" left out), where each
// NAME=FOLDER behind --volume, and each spec.PATH=VALUE behind --set, has the flag in front of it.
// A job file that follows stays what it is, so flags may stand before it.
std::vector<std::string> EachWithItsFlag(const std::vector<std::string>& words);

}  // namespace parallelrun::cli
