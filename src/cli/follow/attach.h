// `parallelrun attach JOB --namespace …`: how far a job of a cluster is, on this terminal, to its
// end. Blocking; main thread.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "cli/cluster/kubectl.h"
#include "cli/follow/cluster_events.h"

namespace parallelrun::cli {

// Whether a threshold of the job speaks of items that fail.
bool AllowsLosses(const nlohmann::json& job);

// What is said at the end. `words` name the job on a command line: "digits --namespace team".
std::string EndText(const nlohmann::json& job, const ClusterEnd& end, const std::string& words);

// The exit status of the job, as `run` has it; 2 where there is none of that name. Ctrl-C ends the
// command and leaves the job alone.
int AttachToJob(const KubectlWhere& where, const std::string& name);

}  // namespace parallelrun::cli
