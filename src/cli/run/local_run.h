// `parallelrun run`: one job on this machine. Owns the port, starts the coordinator and the agents
// as child processes, replaces those that die, shows the progress, and leaves nothing running.
#pragma once

#include <string>

#include "cli/run/local_job.h"

namespace parallelrun::cli {

// Exit statuses of the command.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitLosses = 3;
inline constexpr int kExitSignal = 128;  // and the signal, as a shell reports it: 130 for Ctrl-C

// The command lines that go on with a job.
struct NextCommands {
  std::string resume;
  std::string retry_failed;
};

// Runs the job to its end; returns the exit status.
int RunLocally(const LocalJob& job, const RunRequest& request, const NextCommands& next);

}  // namespace parallelrun::cli
