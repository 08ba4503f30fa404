#include "coordinator/start/state_lock.h"

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include "base/escape.h"
#include "base/small_file.h"

namespace parallelrun::coordinator {
namespace {

constexpr size_t kMostPid = 20;

std::string LockOf(const std::string& folder) { return folder + "/lock"; }

// The number of the process that has the lock, as it says.
std::string HolderOf(const Files& files, const std::string& path) {
  const Result<std::string> pid = ReadBegin(files, path, kMostPid);
  return pid.ok() && !pid->empty() ? Printable(*pid, kMostPid) : "unknown";
}

}  // namespace

Result<std::unique_ptr<File>> LockState(Files& files, const std::string& folder) {
  if (const Status made = files.MakeFolders(folder); !made.ok()) return made.error();
  Result<std::unique_ptr<File>> lock = files.Lock(LockOf(folder));
  if (!lock.ok() && lock.error().code == Code::kUnavailable) {
    return Error{Code::kUnavailable,
                 fmt::format("another parallelrun works on this job (process {}, state folder {}): "
                             "wait for it, or stop it",
                             HolderOf(files, LockOf(folder)), folder)};
  }
  if (!lock.ok()) return lock;
  if (const Status cut = (*lock)->Cut(0); !cut.ok()) return cut.error();
  const Status written = (*lock)->WriteAt(0, std::to_string(getpid()));
  if (!written.ok()) return written.error();
  return lock;
}

bool StateIsLocked(const Files& files, const std::string& folder) {
  return files.IsLocked(LockOf(folder));
}

Status CheckLocked(const Files& files, const File& lock, const std::string& folder) {
  const Result<FileFacts> held = lock.Stat();
  if (!held.ok()) return held.error();
  const Result<FileFacts> named = files.Stat(LockOf(folder));
  if (!named.ok() && named.error().code != Code::kNotFound) return {};  // it cannot be told now
  if (named.ok() && named->id == held->id) return {};
  return Error{Code::kNotFound,
               fmt::format("the state folder {} was removed or moved while the job ran: put it "
                           "back, and continue the run",
                           folder)};
}

}  // namespace parallelrun::coordinator
