// `parallelrun run --detach`: the same command once more, in a session of its own, which goes on
// when the terminal is closed. Blocking, from a process without threads.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "base/fd.h"

namespace parallelrun::cli {

// Starts `words` (the program's name first, "--detach" among them) and waits until the run has
// begun or has been refused; says which. Returns the exit status of the command.
int Detach(const std::vector<std::string>& words, const std::string& output);

// In the process that was started so: tells its parent that the run has begun, and has what is said
// from now on go to a file, behind what was said so far. Elsewhere nothing.
class DetachedRun {
 public:
  // Takes what Detach has left in the environment, so that no child of the run has it.
  DetachedRun();
  // kUnavailable: nobody waits for it any more, so it shall not run.
  Status Begun(const std::string& state_folder);

 private:
  Fd parent_;
};

}  // namespace parallelrun::cli
