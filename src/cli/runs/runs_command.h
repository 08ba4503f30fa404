// `parallelrun ps`, `stop` and `attach`: the runs of this user on this machine, found by their
// output.
#pragma once

#include <cstdint>
#include <string>

namespace parallelrun::cli {

struct StopRequest {
  std::string target;   // output folder, output file or state folder of the run
  bool now = false;     // do not wait for the mini-batches that run
  uint32_t wait = 300;  // seconds, until the run must have ended
};

// Each returns the exit status of the command.
int PrintRuns(bool json);
int StopRun(const StopRequest& request);
int AttachToRun(const std::string& target);

}  // namespace parallelrun::cli
