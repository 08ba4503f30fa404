#include "base/config_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <string_view>

#include "base/fd.h"
#include "base/small_file.h"

namespace parallelrun {

std::optional<int> OwnDescriptor(const std::string& path) {
  constexpr std::string_view kFolder = "/dev/fd/";
  if (!path.starts_with(kFolder)) return std::nullopt;
  int number = 0;
  const char* const end = path.data() + path.size();
  const auto [read, error] = std::from_chars(path.data() + kFolder.size(), end, number);
  if (error != std::errc() || read != end || number <= STDERR_FILENO) return std::nullopt;
  return number;
}

Result<std::string> ReadConfigFile(const std::string& path, size_t most) {
  const std::optional<int> own = OwnDescriptor(path);
  const Fd fd(own ? *own : open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.ok()) return ErrnoError(errno, "open the configuration " + path);
  return ReadWhole(fd.get(), most, "the configuration " + path);
}

}  // namespace parallelrun
