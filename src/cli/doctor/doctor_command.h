// `parallelrun doctor`: whether jobs can run on this machine, and what stands in their way.
#pragma once

#include <string>

namespace parallelrun::cli {

struct DoctorRequest {
  std::string folder = ".";  // that a run would write to
  std::string python;        // of --python
  bool json = false;
};

// Returns the exit status: 1 where something must be fixed.
int Doctor(const DoctorRequest& request);

}  // namespace parallelrun::cli
