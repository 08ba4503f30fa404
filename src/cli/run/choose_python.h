// Which Python runs the script on this machine.
#pragma once

#include <functional>
#include <string>

#include "api/job.h"

namespace parallelrun::cli {

struct PythonChoice {
  std::string program;  // a path, or a name to be looked up in PATH
  std::string why;      // "of the active virtual environment"; "": the job or the path says so
};

// `flag` (of --python) goes first, then what the job says, then the Python whose wheel started the
// command (PARALLELRUN_PYTHON), then the active virtual environment (VIRTUAL_ENV, CONDA_PREFIX),
// then python3 of the path. `variable` is getenv.
PythonChoice ChoosePython(const std::string& flag, const api::JobSpec& spec,
                          const std::function<const char*(const char*)>& variable);

}  // namespace parallelrun::cli
