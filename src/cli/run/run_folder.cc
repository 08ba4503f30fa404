#include "cli/run/run_folder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

namespace parallelrun::cli {
namespace {

namespace fs = std::filesystem;

constexpr char kPattern[] = "parallelrun-XXXXXX";
constexpr char kPrefix[] = "parallelrun-";
constexpr char kLock[] = "lock";

// A folder of this user whose lock nobody holds: its command was killed.
bool IsLeft(const fs::path& folder) {
  if (folder.filename().string().size() != sizeof(kPattern) - 1) return false;
  struct stat facts {};
  if (lstat(folder.c_str(), &facts) != 0 || !S_ISDIR(facts.st_mode)) return false;
  if (facts.st_uid != geteuid()) return false;
  const int lock = open((folder / kLock).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (lock < 0) return false;
  const bool left = flock(lock, LOCK_EX | LOCK_NB) == 0;
  close(lock);
  return left;
}

// The lock goes last: what a killed command has left of this is then found by the next one.
void Remove(const fs::path& folder) {
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (it->path().filename() != kLock) fs::remove_all(it->path(), ignored);
  }
  fs::remove_all(folder, error);
}

void RemoveLeft(const fs::path& below) {
  std::error_code error;
  for (fs::directory_iterator it(below, error), end; !error && it != end; it.increment(error)) {
    if (it->path().filename().string().starts_with(kPrefix) && IsLeft(it->path())) {
      Remove(it->path());
    }
  }
}

}  // namespace

RunFolder::~RunFolder() {
  if (!path_.empty()) Remove(path_);
  if (lock_ >= 0) close(lock_);
}

Status RunFolder::Make() {
  std::error_code error;
  const fs::path below = fs::temp_directory_path(error);
  if (error) {
    return Error{Code::kInvalid, "the folder for temporary files cannot be used: " +
                                     error.message() + "; set TMPDIR to a folder that is there"};
  }
  RemoveLeft(below);
  std::string name = below / kPattern;
  if (mkdtemp(name.data()) == nullptr) return ErrnoError(errno, "make a folder like " + name);
  path_ = name;
  // Locked before it has its name: what is not locked is taken for left.
  const std::string lock = path_ + "/" + kLock;
  const std::string unnamed = lock + ".new";
  lock_ = open(unnamed.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (lock_ < 0 || flock(lock_, LOCK_EX | LOCK_NB) != 0 ||
      rename(unnamed.c_str(), lock.c_str()) != 0) {
    return ErrnoError(errno, "lock " + path_).With("choose another temporary folder with TMPDIR");
  }
  return {};
}

}  // namespace parallelrun::cli
