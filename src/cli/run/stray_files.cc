#include "cli/run/stray_files.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>

#include "base/count_of.h"
#include "base/escape.h"

namespace parallelrun::cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxLooked = 100'000;  // of all entries
constexpr size_t kMaxNamed = 3;
constexpr size_t kMaxName = 200;  // bytes of one that are shown

// What we make there, and what Python does.
bool IsOurs(const fs::path& name, bool top) {
  return name == "__pycache__" || (top && (name == "logs" || name == "outputs"));
}

void AddStray(const fs::path& work, const fs::path& code, size_t& looked,
              std::set<std::string>& found) {
  std::error_code error;
  fs::recursive_directory_iterator it(work, fs::directory_options::skip_permission_denied, error);
  for (const fs::recursive_directory_iterator end; !error && it != end; it.increment(error)) {
    if (++looked > kMaxLooked) return;
    std::error_code unknown;
    const fs::file_status status = it->symlink_status(unknown);
    if (IsOurs(it->path().filename(), it.depth() == 0)) {
      it.disable_recursion_pending();
    } else if (fs::is_regular_file(status)) {
      const fs::path name = it->path().lexically_relative(work);
      if (!fs::exists(fs::symlink_status(code / name, unknown))) found.insert(name.string());
    }
  }
}

}  // namespace

std::string StrayFiles(const std::string& folder) {
  std::set<std::string> found;
  size_t looked = 0;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (!it->path().filename().string().starts_with("node-")) continue;
    AddStray(it->path(), fs::path(folder) / "code", looked, found);
  }
  if (found.empty()) return "";
  std::string names;
  size_t named = 0;
  for (const std::string& name : found) {
    if (named++ == kMaxNamed) break;
    names += (names.empty() ? "" : ", ") + Printable(name, kMaxName);
  }
  if (found.size() > kMaxNamed) names += fmt::format(" and {} more", found.size() - kMaxNamed);
  return fmt::format(
      "the script wrote {} into its working folder, a copy of the code that goes with the run: {}. "
      "What is to stay belongs into the output folder: ./outputs, or the path that $(output) in an "
      "argument stands for",
      CountOf(found.size(), "file"), names);
}

}  // namespace parallelrun::cli
