// parallelrun explain: what a word means that people have to do with (docs/cli.md).
#pragma once

#include <string>

#include "base/error.h"

namespace parallelrun::cli {

// A field of a job as "spec.errorThreshold", a reason as "NodeBackOff", or an exit status of the
// command as "3". kNotFound says what may be meant. Pure.
Result<std::string> Explained(const std::string& word);

// Prints it. Returns an exit status.
int PrintExplained(const std::string& word);

}  // namespace parallelrun::cli
