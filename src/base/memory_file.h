// A file in memory alone: what a child reads or writes there is on no disk and no command line, and
// waits for nobody, as it would in a pipe.
#pragma once

#include <string>

#include "base/error.h"
#include "base/fd.h"

namespace parallelrun {

// Holds `text`, and stands at its begin. `name` is shown in /proc; closed on exec.
Result<Fd> MemoryFile(const char* name, const std::string& text);

}  // namespace parallelrun
