#include "cli/run/programs.h"

#include <filesystem>

namespace parallelrun::cli {

namespace fs = std::filesystem;

std::vector<std::string> Programs::Command(const std::string& program,
                                           const std::vector<std::string>& arguments) const {
  std::vector<std::string> words = loader;
  words.push_back(program);
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

Result<Programs> FindPrograms() { return ProgramsAround(fs::read_symlink("/proc/self/exe")); }

Result<Programs> ProgramsAround(const std::string& executable) {
  const fs::path folder = fs::path(executable).parent_path();
  const fs::path root = folder.parent_path();
  const bool bundled = fs::path(executable).filename() == "ld.so";
  Programs programs;
  if (bundled) programs.loader = {executable, "--library-path", folder};
  const fs::path bin = bundled ? root / "bin" : folder;
  programs.coordinator = bin / "parallelrun-coordinator";
  programs.agent = bin / "parallelrun-agent";
  programs.python_package = root / (bundled ? "python" : "lib/parallelrun/python");
  for (const std::string& path : {programs.coordinator, programs.agent, programs.python_package}) {
    if (!fs::exists(path)) {
      return Error{Code::kNotFound, path + " is missing: ParallelRun is not installed completely"};
    }
  }
  return programs;
}

}  // namespace parallelrun::cli
