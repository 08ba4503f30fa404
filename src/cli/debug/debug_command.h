// `parallelrun debug`: one mini-batch, or one item, of a run again, in this terminal: init() and
// run() by the worker package, on the code where it lies, with the arguments and the environment of
// the run. Nothing of the run is changed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/debug/planned_work.h"

namespace parallelrun::cli {

struct DebugRequest {
  std::string target;               // output folder, output file or state folder of the run
  WantedWork wanted;                // one of the two
  bool pdb = false;                 // a debugger at an exception
  std::optional<uint16_t> debugpy;  // port of this machine where an editor is waited for
  std::string python;               // empty: that of the run
  std::string code;                 // folder; empty: that of the run
};

// Becomes the Python that does it. Returns, with an exit status, only when that is not possible.
int Debug(const DebugRequest& request);

}  // namespace parallelrun::cli
