// `parallelrun failures`: the items that failed, from the log folder of a run on this machine, in a
// store, or of a job of a cluster.
#pragma once

#include <string>

#include "cli/fetch/job_logs.h"

namespace parallelrun::cli {

struct FailuresRequest {
  std::string target;  // the output, its folder, or the log folder; or a URL of logs
  NamedJob job;        // of a cluster, in place of it; without a name: none
  bool traceback = false;
  bool paths = false;
  bool null = false;  // paths end with a zero, as for xargs -0
  bool json = false;
};

// The exit status: 0 told, also that there is none; 1 it cannot be read, or paths were left out; 2
// there are no logs, or the run has no verdict yet.
int PrintFailures(const FailuresRequest& request);

}  // namespace parallelrun::cli
