#include "base/small_file.h"

#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/escape.h"
#include "base/fd.h"
#include "base/system_files.h"

namespace parallelrun {
namespace {

constexpr size_t kShown = 1000;

}  // namespace

Result<std::string> ReadBegin(int fd, size_t most, const std::string& name) {
  std::string text;
  std::array<char, 16384> buffer{};
  while (text.size() < most) {
    const size_t wanted = std::min(buffer.size(), most - text.size());
    const ssize_t n = Retry([&] { return read(fd, buffer.data(), wanted); });
    if (n < 0) return ErrnoError(errno, "read " + Printable(name, kShown));
    if (n == 0) break;
    text.append(buffer.data(), static_cast<size_t>(n));
  }
  return text;
}

Result<std::string> ReadSmallFile(const std::string& path, size_t limit, int flags) {
  const Fd fd(Retry([&] { return open(path.c_str(), O_RDONLY | O_CLOEXEC | flags); }));
  if (!fd.ok()) return ErrnoError(errno, "read " + Printable(path, kShown));
  Result<std::string> text = ReadBegin(fd.get(), limit + 1, path);
  if (!text.ok() || text->size() <= limit) return text;
  const bool large = limit >> 20 > 0;
  return Error{Code::kInvalid,
               fmt::format("read {}: it has more than {} {}", Printable(path, kShown),
                           large ? limit >> 20 : limit, large ? "MiB" : "bytes")};
}

}  // namespace parallelrun
