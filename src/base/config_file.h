// The configuration of a program, which holds its key or token, and descriptors by name. Called
// before a program has threads.
#pragma once

#include <optional>
#include <string>

#include "base/error.h"

namespace parallelrun {

// N of "/dev/fd/N", above those of the standard streams. Such a name is for the program that it is
// given to; but the system may refuse it to one that others cannot look into (prctl(2),
// PR_SET_DUMPABLE), so the descriptor is used and the name never opened.
std::optional<int> OwnDescriptor(const std::string& path);

// All of a file. A pipe, or file in memory, that was given as /dev/fd/N is read from where it
// stands and closed: from then on no descriptor leads to the secret. kInvalid: it has more than
// `most` bytes.
Result<std::string> ReadConfigFile(const std::string& path, size_t most);

}  // namespace parallelrun
