#include "base/open_below.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace parallelrun {

int OpenBelow(int folder, const std::string& name, int flags, unsigned mode) {
  open_how how{};
  how.flags = static_cast<uint64_t>(flags) | O_CLOEXEC;
  // With O_DIRECTORY the link would be told as "not a directory" first; it is refused either way.
  if ((flags & O_DIRECTORY) == 0) how.flags |= O_NOFOLLOW;
  // openat2 refuses what open ignores: a mode without O_CREAT, and O_NONBLOCK with O_PATH.
  if ((flags & O_PATH) == 0) how.flags |= O_NONBLOCK;
  if ((flags & O_CREAT) != 0) how.mode = mode;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  return static_cast<int>(syscall(SYS_openat2, folder, name.c_str(), &how, sizeof how));
}

Error ErrorBelow(int number, const std::string& what) {
  Error error = ErrnoError(number, what);
  if (number == ELOOP || number == EXDEV) {
    error.code = Code::kPermission;
    error.message += " (a link is in the way; remove it)";
  }
  return error;
}

}  // namespace parallelrun
