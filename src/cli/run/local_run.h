// `parallelrun run`: one job on this machine. Owns the port, starts the coordinator and the agents
// as child processes, replaces those that die, shows the progress, and leaves nothing running.
#pragma once

#include <string>

#include "cli/run/local_job.h"

namespace parallelrun {

// Exit statuses of the command.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitInterrupted = 130;  // as a shell reports Ctrl-C

// Runs the job to its end; returns the exit status. `again` is the command line that continues it.
int RunLocally(const LocalJob& job, const RunRequest& request, const std::string& again);

}  // namespace parallelrun
