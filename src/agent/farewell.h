// How an agent ends for people who look at its pod: the last error, where Kubernetes shows it.
#pragma once

#include <string>

#include "base/files.h"

namespace parallelrun::agent {

// One line of at most 4,096 bytes into `path`, in place; only if the file exists already. Any
// failure is silent: the log has the same words. A pipe in its place is not waited for.
void LeaveFarewell(Files& files, const std::string& path, const std::string& words);

}  // namespace parallelrun::agent
