// The bundle: the folder that holds this program, its libraries with their loader, and the Python
// package. An init container copies it beside a user's image. Blocking; any thread.
#pragma once

#include <string>

#include "base/error.h"

namespace parallelrun::agent {

// The bundle that this program was started from: the parent of the folder of its executable, which
// is `bin`, or `lib` where the bundle's own loader started it.
Result<std::string> OwnBundle();

// Copies files and folders with their modes, and links as they are; each file appears whole, so
// that a copy may be repeated over one that was cut off, or over one in use.
Status InstallBundle(const std::string& bundle, const std::string& folder);

}  // namespace parallelrun::agent
