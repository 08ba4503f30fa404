#include "cli/commands/cluster_flags.h"

#include <CLI/CLI.hpp>

namespace parallelrun::cli {

void AddClusterFlags(CLI::App& app, NamedJob& job) {
  app.add_option("-n,--namespace", job.where.name_space,
                 "Namespace of a job of a cluster, as for kubectl");
  app.add_option("--context", job.where.context, "Context of the kubeconfig, likewise");
  app.add_option("--wait", job.wait,
                 "Of a job of a cluster: seconds until a pod that reads must run")
      ->capture_default_str()
      ->check(CLI::Range(1, 86400));
}

}  // namespace parallelrun::cli
