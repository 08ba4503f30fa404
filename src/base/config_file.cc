#include "base/config_file.h"

#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <string_view>

#include "base/fd.h"

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
  std::string text;
  std::array<char, 16384> buffer{};
  for (;;) {
    const ssize_t n = read(fd.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoError(errno, "read the configuration " + path);
    if (n == 0) return text;
    text.append(buffer.data(), static_cast<size_t>(n));
    if (text.size() > most) {
      return Error{Code::kInvalid,
                   fmt::format("the configuration {} is above {} MiB", path, most >> 20)};
    }
  }
}

}  // namespace parallelrun
