// `parallelrun logs`: what the scripts of a run have written, on this machine, in a store, or of a
// job of a cluster.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/fetch/job_logs.h"

namespace parallelrun::cli {

struct LogsRequest {
  std::string target;            // output folder, file or state folder of the run; or a URL of logs
  NamedJob job;                  // of a cluster, in place of it; without a name: none
  bool follow = false;           // until the run has ended
  std::optional<uint32_t> node;  // that one alone
  std::string item;              // what the attempts of its mini-batch wrote; "": all
};

// Returns the exit status of the command.
int PrintLogs(const LogsRequest& request);

}  // namespace parallelrun::cli
