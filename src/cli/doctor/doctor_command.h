// `parallelrun doctor`: whether jobs can run on this machine, or on a cluster, and what stands in
// their way.
#pragma once

#include <string>

#include "cli/cluster/kubectl.h"

namespace parallelrun::cli {

struct DoctorRequest {
  std::string folder = ".";  // that a run would write to
  std::string python;        // of --python
  KubectlWhere where;        // a cluster is looked at where one of the two is given
  bool json = false;
};

// Returns the exit status: 1 where something must be fixed.
int Doctor(const DoctorRequest& request);

}  // namespace parallelrun::cli
