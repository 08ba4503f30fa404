// `parallelrun fetch`: brings to this machine what a job of a cluster has written, by kubectl and
// with its user's own rights, also after the job's pods are gone.
#pragma once

#include <string>

#include "cli/cluster/kubectl.h"
#include "cli/fetch/wanted_files.h"

namespace parallelrun::cli {

struct FetchRequest {
  std::string job;
  FetchWhat what = FetchWhat::kOutput;
  std::string folder;  // where it comes
  KubectlWhere where;
  int wait = 300;  // seconds until a reader pod must run, and the coordinator of an ended job not
};

// Blocks until it is there. The exit status.
int Fetch(const FetchRequest& request);

}  // namespace parallelrun::cli
