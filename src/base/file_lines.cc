#include "base/file_lines.h"

#include <string>

#include "base/files.h"

namespace parallelrun {
namespace {

constexpr size_t kReadAtOnce = size_t{1} << 20;

}  // namespace

Result<uint64_t> EachLine(const File& file, size_t longest,
                          const std::function<bool(std::string_view)>& each) {
  std::string line;
  std::string buffer(kReadAtOnce, '\0');
  uint64_t too_long = 0;
  bool skipping = false;
  for (uint64_t offset = 0;;) {
    const Result<size_t> read = file.ReadInto(offset, buffer);
    if (!read.ok()) return read.error();
    if (*read == 0) break;
    offset += *read;
    std::string_view left(buffer.data(), *read);
    while (!left.empty()) {
      const size_t end = left.find('\n');
      const bool whole = end != std::string_view::npos;
      const std::string_view piece = left.substr(0, end);
      if (!skipping && line.size() + piece.size() > longest) {
        skipping = true;
        ++too_long;
        line.clear();
      }
      if (!skipping) line += piece;
      if (whole && !skipping && !line.empty() && !each(line)) return too_long;
      if (whole) {
        line.clear();
        skipping = false;
      }
      left.remove_prefix(whole ? end + 1 : left.size());
    }
  }
  if (!line.empty()) each(line);
  return too_long;
}

}  // namespace parallelrun
