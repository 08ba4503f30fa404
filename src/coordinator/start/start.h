// The coordinator from its configuration to its exit code: claims an epoch, decides what becomes of
// an earlier run's state, and serves the job.
#pragma once

#include "base/error.h"
#include "base/files.h"
#include "coordinator/server.h"
#include "coordinator/start/config.h"

namespace parallelrun::coordinator {

// An error is CoordinatorExit::kCannotStart, with the one message that the user needs. Leaves the
// last words where the configuration says, whatever the end.
Result<CoordinatorExit> RunCoordinator(const CoordinatorConfig& config, Files& files);

}  // namespace parallelrun::coordinator
