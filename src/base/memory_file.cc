#include "base/memory_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

namespace parallelrun {

Result<Fd> MemoryFile(const char* name, const std::string& text) {
  Fd file(memfd_create(name, MFD_CLOEXEC));
  if (!file.ok()) return ErrnoError(errno, "make a file in memory");
  if (pwrite(file.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    return ErrnoError(errno, "write a file in memory");
  }
  return file;
}

}  // namespace parallelrun
