#include "cli/run/programs.h"

#include <filesystem>

namespace parallelrun {

namespace fs = std::filesystem;

Result<Programs> FindPrograms() {
  const fs::path here = fs::read_symlink("/proc/self/exe").parent_path();
  const Programs programs{here / "parallelrun-coordinator", here / "parallelrun-agent",
                          (here.parent_path() / "lib/parallelrun/python").lexically_normal()};
  for (const std::string& path : {programs.coordinator, programs.agent, programs.python_package}) {
    if (!fs::exists(path)) {
      return Error{Code::kNotFound, path + " is missing: ParallelRun is not installed completely"};
    }
  }
  return programs;
}

}  // namespace parallelrun
