// What an earlier run has left in the log tree goes to previous/<time> when a run starts over, so
// that a report is never taken for one of the new run, and nobody loses the logs of a failure by
// trying again. Blocking I/O; no link is followed.
#pragma once

#include <cstddef>
#include <string>

#include "base/error.h"
#include "base/time.h"
#include "coordinator/log_tree/log_folder.h"

namespace parallelrun::coordinator {

constexpr size_t kPreviousKept = 10;  // of these folders; the oldest go

// Which logs of the new run may be open already, and go on where they are.
enum class OpenLogs {
  kCoordinator,          // in a pod, where a node's are uploaded later
  kCoordinatorAndNodes,  // those of the children of `parallelrun run`
};

// Says where they are now, relative to `folder`; empty: there were none. What has failed in the
// middle has lost nothing, and may be done again, which sets aside what was left.
Result<std::string> SetLogsAside(const LogFolder& folder, OpenLogs open, WallTime now);

}  // namespace parallelrun::coordinator
