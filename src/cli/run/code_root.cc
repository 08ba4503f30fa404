#include "cli/run/code_root.h"

#include <fcntl.h>

#include <sys/stat.h>

#include <filesystem>
#include <system_error>

#include "base/fd.h"
#include "base/small_file.h"
#include "cli/run/local_job.h"

namespace parallelrun::cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostNamesOfFolder = 1000;  // looked at in one folder
constexpr size_t kJobFileBegin = 4096;       // bytes in which a job file says what it is

bool IsJobFile(const fs::path& file) {
  const std::string suffix = file.extension();
  std::error_code ignored;
  if ((suffix != ".yaml" && suffix != ".yml") || !fs::is_regular_file(file, ignored)) return false;
  const Fd fd(open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.ok()) return false;
  const Result<std::string> text = ReadBegin(fd.get(), kJobFileBegin, file);
  return text.ok() && ("\n" + *text).find("\nkind: ParallelRunJob") != std::string::npos;
}

bool HasMarker(const fs::path& folder) {
  std::error_code error;
  if (fs::exists(folder / "pyproject.toml", error) || fs::exists(folder / ".git", error)) {
    return true;
  }
  size_t seen = 0;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (++seen > kMostNamesOfFolder) return false;
    if (IsJobFile(entry->path())) return true;
  }
  return false;
}

bool EndsTheSearch(const fs::path& folder, const std::string& home) {
  std::error_code ignored;
  if (folder == folder.root_path() || (!home.empty() && fs::equivalent(folder, home, ignored))) {
    return true;
  }
  struct stat facts {};
  return stat(folder.c_str(), &facts) != 0 || (facts.st_mode & S_ISVTX) != 0;
}

fs::path ProjectOf(const fs::path& own, const std::string& home) {
  for (fs::path folder = own; !EndsTheSearch(folder, home); folder = folder.parent_path()) {
    if (HasMarker(folder)) return folder;
  }
  return own;
}

}  // namespace

Result<CodeRoot> FindCodeRoot(const std::string& script, const std::string& code,
                              const std::string& home) {
  const fs::path file = Absolute(fs::current_path(), script);
  const fs::path folder = code.empty() ? ProjectOf(file.parent_path(), home)
                                       : fs::path(Absolute(fs::current_path(), code));
  const fs::path below = file.lexically_relative(folder);
  if (below.empty() || *below.begin() == "..") {
    return Error{Code::kInvalid, "the entry script " + file.string() +
                                     " does not lie below the code folder " + folder.string() +
                                     ": give a folder that holds it with --code"};
  }
  return CodeRoot{folder, below};
}

}  // namespace parallelrun::cli
