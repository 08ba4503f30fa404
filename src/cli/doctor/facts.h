// What can be seen of this machine and this installation, for `parallelrun doctor`. Starts the
// Python that would run scripts, writes and removes a file in each folder; blocking, from the main
// thread only (agent/processes/spawn.h).
#pragma once

#include <string>

#include "cli/doctor/findings.h"

namespace parallelrun::cli {

// `python` is that of --python, or empty; `folder` is where a run would write.
MachineFacts GatherFacts(const std::string& python, const std::string& folder);

}  // namespace parallelrun::cli
