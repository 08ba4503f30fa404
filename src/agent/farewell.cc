#include "agent/farewell.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/escape.h"

namespace parallelrun::agent {

void LeaveFarewell(const std::string& path, const std::string& words) {
  constexpr size_t kMost = 4000;  // Printable may add a few bytes
  const int fd = open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOCTTY);
  if (fd < 0) return;
  const std::string line = Printable(words, kMost) + "\n";
  const ssize_t ignored = write(fd, line.data(), line.size());
  static_cast<void>(ignored);
  close(fd);
}

}  // namespace parallelrun::agent
