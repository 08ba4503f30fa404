// The guardian: `parallelrun-agent guard --watch FD -- COMMAND…`. It starts COMMAND and outlives
// it, so that nothing that COMMAND or its descendants started survives, whatever session or
// process group it moved to. Small, single-threaded, no allocation that matters: the last one up.
#pragma once

#include <string>
#include <vector>

namespace parallelrun::agent {

// Runs `command` (looked up in PATH; it inherits every descriptor that is not close-on-exec, but
// not `watch_fd`) until it ends or the other end of the pipe `watch_fd` closes. Then kills every
// process below this one, for 10 s at most, and returns the exit status: of the command, 128 + the
// signal that killed it, or 127 when it cannot be started. SIGTERM is passed on, once, SIGTSTP and
// SIGCONT each time; SIGINT and SIGHUP are ignored. Call it in a process that does nothing else.
int Guard(int watch_fd, const std::vector<std::string>& command);

}  // namespace parallelrun::agent
