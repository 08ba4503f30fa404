#include "cli/run/choose_python.h"

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <filesystem>

namespace parallelrun::cli {

PythonChoice ChoosePython(const std::string& flag, const api::JobSpec& spec,
                          const std::function<const char*(const char*)>& variable) {
  if (!flag.empty()) {
    // The workers have a working directory of their own.
    const bool path = flag.find('/') != std::string::npos;
    return {path ? std::filesystem::absolute(flag).lexically_normal().string() : flag, ""};
  }
  const std::string by_default = api::Environment().python;
  if (spec.environment.python != by_default) return {spec.environment.python, ""};
  const char* caller = variable("PARALLELRUN_PYTHON");
  if (caller != nullptr && *caller == '/' && eaccess(caller, X_OK) == 0) {
    return {caller, "of the environment that this command was called from"};
  }
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const char* folder = variable(name);
    if (folder == nullptr || *folder == '\0') continue;
    const std::string python = std::string(folder) + "/bin/" + by_default;
    if (eaccess(python.c_str(), X_OK) == 0) {
      return {python, fmt::format("of the active environment ({})", name)};
    }
  }
  return {by_default, ""};
}

}  // namespace parallelrun::cli
