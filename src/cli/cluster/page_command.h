// `parallelrun page`: the live page of a job on a cluster, through a port that kubectl forwards
// with its user's own rights.
#pragma once

#include <cstdint>
#include <string>

#include "cli/cluster/kubectl.h"

namespace parallelrun::cli {

struct PageRequest {
  std::string job;
  KubectlWhere where;
  uint16_t port = 0;  // of this machine; 0: any
};

// Blocks until the job is over. The exit status.
int ShowPage(const PageRequest& request);

}  // namespace parallelrun::cli
