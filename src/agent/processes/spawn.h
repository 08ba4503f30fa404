// Starting a child program with given descriptors, and nothing else inherited. From the main
// thread only: the child dies with the thread that started it.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "base/error.h"

namespace parallelrun::agent {

// What to do when there is no process or thread to be had (EAGAIN).
inline constexpr char kNoMoreProcesses[] =
    "there may be no more processes; end some, or raise their limit (ulimit -u; in a container, "
    "the "
    "limit of process IDs)";

struct SpawnSpec {
  std::vector<std::string> command;      // a name without "/" is looked up in PATH of `environment`
  std::vector<std::string> environment;  // all of it, NAME=value
  std::string folder;                    // working directory
  std::vector<int> descriptors;          // become 0, 1, 2, …
  int end_signal = SIGKILL;              // what it gets when this thread ends
};

// This process's own, as SpawnSpec takes it.
std::vector<std::string> OwnEnvironment();

// Forks, and waits until the program is executed. The child leads its own process group, has
// default signal dispositions and an empty mask, and gets `end_signal` when this thread ends.
Result<pid_t> Spawn(const SpawnSpec& spec);

// Takes leave of children that have ended and that `is_ours` does not know: orphans that came to
// this process because it is process 1 of a container, or their subreaper.
void ReapOrphans(const std::function<bool(pid_t)>& is_ours);

}  // namespace parallelrun::agent
