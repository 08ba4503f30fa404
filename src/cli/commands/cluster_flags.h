// The flags by which the word of a command names a job of a cluster, and not something of this
// machine.
#pragma once

#include "cli/fetch/job_logs.h"

namespace CLI {  // NOLINT(readability-identifier-naming): that of CLI11
class App;
}

namespace parallelrun::cli {

// -n, --namespace, --context and --wait. `job` must outlive what `app` parses; its name is the
// command's own word.
void AddClusterFlags(CLI::App& app, NamedJob& job);

}  // namespace parallelrun::cli
