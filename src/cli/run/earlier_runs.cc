#include "cli/run/earlier_runs.h"

#include <algorithm>
#include <system_error>

#include "cli/run/quick_output.h"
#include "output/output_index.h"

namespace parallelrun::cli {
namespace {

namespace fs = std::filesystem;

bool HasModule(const fs::path& folder) {
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it->path().extension() == ".py") return true;
  }
  return false;
}

bool HoldsRun(const fs::path& folder) { return IsState(folder / "state") && !HasModule(folder); }

}  // namespace

bool IsState(const fs::path& folder) {
  std::error_code ignored;
  // The ledger, or the note of one in a store.
  return (fs::is_directory(folder / "epochs", ignored) ||
          fs::is_regular_file(folder / "chain.json", ignored)) &&
         fs::is_regular_file(folder / "run.json", ignored);
}

std::set<std::string> LeftByRuns(const fs::path& folder, const std::vector<fs::path>& found) {
  std::set<std::string> left;
  if (IsState(folder / "state")) left = {"state", "logs"};
  const std::string run = RunFolderOf("");
  for (const fs::path& path : found) {
    std::error_code ignored;
    if (!fs::is_directory(fs::symlink_status(path, ignored))) continue;
    const std::string name = path.filename();
    if (!IsState(path) && !HoldsRun(path)) continue;
    left.insert(name);
    if (!name.ends_with(run)) continue;
    const std::string output = name.substr(0, name.size() - run.size());
    left.insert({output, output::IndexNameOf(output)});
  }
  return left;
}

}  // namespace parallelrun::cli
