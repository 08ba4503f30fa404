// Processes found through /proc, and ended with all that they fork meanwhile. Allocates little, and
// needs no thread: the guardian uses it when nothing else is left.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "base/time.h"

namespace parallelrun::agent {

using OnEnd = std::function<void(pid_t child, int status)>;

// Takes leave of the children that have ended; false once there is no child at all.
bool ReapChildren(const OnEnd& ended);

// Kills every process below this one, and takes leave of it, until none is left or `limit` is over.
// Orphans are below this process too if it is their subreaper.
void KillDescendants(Duration limit, const OnEnd& ended);

// Stops every process below this one that is not stopped already, until a look finds no new one or
// `limit` is over. Those that it has stopped.
std::vector<pid_t> StopDescendants(Duration limit);

// Kills every process that was executed with this entry (NAME=value) in its environment, or was
// forked by one that was, but not the caller. Looks for more of them for `limit` at most; false if
// it found new ones to the end.
bool KillProcessesWith(const std::string& entry, Duration limit);

}  // namespace parallelrun::agent
