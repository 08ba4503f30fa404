#include "store/file_path.h"

#include <algorithm>
#include <cstddef>

namespace parallelrun::store {
namespace {

constexpr size_t kLongestName = 255;  // of a file, as Linux takes it

}  // namespace

bool IsFilePath(std::string_view name) {
  while (true) {
    const size_t end = std::min(name.find('/'), name.size());
    const std::string_view part = name.substr(0, end);
    if (part.empty() || part == "." || part == ".." || part.size() > kLongestName) return false;
    if (part.find('\0') != std::string_view::npos) return false;
    if (end == name.size()) return true;
    name.remove_prefix(end + 1);
  }
}

}  // namespace parallelrun::store
