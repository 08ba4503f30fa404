#include "coordinator/start/state_lock.h"

#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "base/escape.h"
#include "base/files.h"

namespace parallelrun {

Result<Fd> LockState(const std::string& folder) {
  if (const Status made = MakeSystemFiles()->MakeFolders(folder); !made.ok()) return made.error();
  const std::string path = folder + "/lock";
  Fd lock(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!lock.ok()) return ErrnoError(errno, "open " + path);
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    char pid[32] = {};
    const ssize_t n = pread(lock.get(), pid, sizeof pid - 1, 0);
    return Error{Code::kUnavailable,
                 fmt::format("another parallelrun works on this job (process {}, state folder {}): "
                             "wait for it, or stop it",
                             n > 0 ? Printable(pid, 20) : "unknown", folder)};
  }
  const std::string pid = std::to_string(getpid());
  if (ftruncate(lock.get(), 0) != 0 ||
      pwrite(lock.get(), pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
    return ErrnoError(errno, "write " + path);
  }
  return lock;
}

bool StateIsLocked(const std::string& folder) {
  const std::string path = folder + "/lock";
  const Fd lock(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!lock.ok()) return errno != ENOENT;  // what cannot be told is taken for locked
  return flock(lock.get(), LOCK_SH | LOCK_NB) != 0;
}

Status CheckLocked(const Fd& lock, const std::string& folder) {
  struct stat held {};
  struct stat named {};
  if (fstat(lock.get(), &held) != 0) return ErrnoError(errno, "look at the lock of " + folder);
  const int found = stat((folder + "/lock").c_str(), &named);
  if (found != 0 && errno != ENOENT && errno != ENOTDIR) return {};  // it cannot be told now
  if (found == 0 && held.st_dev == named.st_dev && held.st_ino == named.st_ino) return {};
  return Error{Code::kNotFound,
               fmt::format("the state folder {} was removed or moved while the job ran: put it "
                           "back, and continue the run",
                           folder)};
}

}  // namespace parallelrun
