#include "base/open_below.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace parallelrun {
namespace {

int OpenAt2(int folder, const char* name, int flags, unsigned mode) {
  open_how how{};
  how.flags = static_cast<uint64_t>(flags) | O_CLOEXEC;
  // With O_DIRECTORY the link would be told as "not a directory" first; it is refused either way.
  if ((flags & O_DIRECTORY) == 0) how.flags |= O_NOFOLLOW;
  // openat2 refuses what open ignores: a mode without O_CREAT, and O_NONBLOCK with O_PATH.
  if ((flags & O_PATH) == 0) how.flags |= O_NONBLOCK;
  if ((flags & O_CREAT) != 0) how.mode = mode;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  return static_cast<int>(syscall(SYS_openat2, folder, name, &how, sizeof how));
}

// Sandboxes that make system calls themselves, and older filters of system calls, have no openat2.
bool HasOpenAt2() {
  static const bool has = [] {
    const Fd root(OpenAt2(AT_FDCWD, ".", O_PATH | O_DIRECTORY, 0));
    return root.ok() || (errno != ENOSYS && errno != EPERM);
  }();
  return has;
}

// One step, which is not to be a link.
int OpenStep(int folder, const char* name, int flags, unsigned mode) {
  const int opened = openat(folder, name, flags | O_NOFOLLOW | O_CLOEXEC, mode);
  if (opened >= 0 || errno != ENOTDIR) return opened;
  struct stat found {};
  const bool link =
      fstatat(folder, name, &found, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(found.st_mode);
  errno = link ? ELOOP : ENOTDIR;
  return -1;
}

}  // namespace

int OpenBelow(int folder, const std::string& name, int flags, unsigned mode) {
  if (HasOpenAt2()) return OpenAt2(folder, name.c_str(), flags, mode);
  return OpenBelowByWalking(folder, name, flags, mode);
}

int OpenBelowByWalking(int folder, const std::string& name, int flags, unsigned mode) {
  if (name.empty() || name.front() == '/') {
    errno = name.empty() ? ENOENT : EXDEV;
    return -1;
  }
  if ((flags & O_PATH) == 0) flags |= O_NONBLOCK;
  Fd at;
  for (size_t begin = 0;;) {
    const size_t end = name.find('/', begin);
    std::string step = name.substr(begin, end - begin);
    if (step.empty()) step = ".";
    if (step == "..") {
      errno = EXDEV;
      return -1;
    }
    const int from = at.ok() ? at.get() : folder;
    if (end == std::string::npos) return OpenStep(from, step.c_str(), flags, mode);
    Fd next(OpenStep(from, step.c_str(), O_PATH | O_DIRECTORY, 0));
    if (!next.ok()) return -1;
    at = std::move(next);
    begin = end + 1;
  }
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
