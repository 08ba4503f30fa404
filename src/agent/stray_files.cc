#include "agent/stray_files.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <set>
#include <system_error>
#include <utility>

#include "base/escape.h"

namespace parallelrun::agent {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxLooked = 100'000;  // of all entries

// What we make there, and what Python does.
bool IsOurs(const fs::path& name, bool top) {
  return name == "__pycache__" || (top && (name == "logs" || name == "outputs"));
}

// Calls with the name of each file, relative to the folder; false: there are more than we look at.
bool EachFile(const fs::path& folder, const std::function<void(std::string)>& call) {
  size_t looked = 0;
  std::error_code error;
  fs::recursive_directory_iterator it(folder, fs::directory_options::skip_permission_denied, error);
  for (const fs::recursive_directory_iterator end; !error && it != end; it.increment(error)) {
    if (++looked > kMaxLooked) return false;
    std::error_code unknown;
    if (IsOurs(it->path().filename(), it.depth() == 0)) {
      it.disable_recursion_pending();
    } else if (fs::is_regular_file(it->symlink_status(unknown))) {
      call(it->path().lexically_relative(folder).string());
    }
  }
  return true;
}

}  // namespace

StrayFiles::StrayFiles(std::string folder) : folder_(std::move(folder)) {
  all_ = EachFile(folder_, [this](const std::string& name) {
    known_.push_back(std::hash<std::string>()(name));
  });
  std::sort(known_.begin(), known_.end());
}

StrayFiles::Found StrayFiles::Look() const {
  Found found;
  if (!all_) return found;  // what is new could not be told from what was there
  std::set<std::string> first;
  EachFile(folder_, [&](std::string name) {
    const size_t hash = std::hash<std::string>()(name);
    if (std::binary_search(known_.begin(), known_.end(), hash)) return;
    ++found.count;
    first.insert(std::move(name));
    if (first.size() > kMostNamed) first.erase(std::prev(first.end()));
  });
  for (const std::string& name : first) found.first.push_back(Printable(name, kShownShort));
  return found;
}

}  // namespace parallelrun::agent
