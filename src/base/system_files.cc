#include "base/system_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "base/config_file.h"
#include "base/escape.h"

namespace parallelrun {
namespace {

constexpr mode_t kFileMode = 0666;  // the umask takes from these
constexpr mode_t kFolderMode = 0777;

Error Failed(const char* call, const std::string& path) {
  const int number = errno;  // before Printable may change it
  return ErrnoError(number, std::string(call) + " " + Printable(path, 1000));
}

bool CannotDo(int number) { return number == EINVAL || number == ENOSYS || number == EOPNOTSUPP; }

bool SameFile(const std::string& one, const std::string& other) {
  struct stat a {};
  struct stat b {};
  return lstat(one.c_str(), &a) == 0 && lstat(other.c_str(), &b) == 0 && a.st_dev == b.st_dev &&
         a.st_ino == b.st_ino;
}

Result<std::unique_ptr<File>> OpenFile(const std::string& path, int flags, const char* call) {
  const int fd = Retry([&] { return open(path.c_str(), flags | O_CLOEXEC, kFileMode); });
  if (fd < 0) return Failed(call, path);
  return MakeSystemFile(Fd(fd), path);
}

class SystemFiles final : public Files {
 public:
  Result<std::unique_ptr<File>> CreateExclusive(const std::string& path) override {
    return OpenFile(path, O_RDWR | O_CREAT | O_EXCL, "create");
  }

  Result<std::unique_ptr<File>> Open(const std::string& path) override {
    return OpenFile(path, O_RDWR, "open");
  }

  Result<std::unique_ptr<File>> OpenOrCreate(const std::string& path) override {
    if (const std::optional<int> own = OwnDescriptor(path)) {
      Fd copy(fcntl(*own, F_DUPFD_CLOEXEC, 0));
      if (!copy.ok()) return Failed("open", path);
      return MakeSystemFile(std::move(copy), path);
    }
    return OpenFile(path, O_RDWR | O_CREAT | O_NOCTTY | O_NONBLOCK, "open");
  }

  Result<std::unique_ptr<File>> OpenRead(const std::string& path) const override {
    return OpenFile(path, O_RDONLY | O_NONBLOCK, "open");
  }

  Status Rename(const std::string& from, const std::string& to) override {
    if (rename(from.c_str(), to.c_str()) != 0) {
      return ErrnoError(errno, "rename " + Printable(from, 1000) + " to " + Printable(to, 1000));
    }
    return {};
  }

  Result<bool> RenameNew(const std::string& from, const std::string& to) override {
    const std::string what = "rename " + Printable(from, 1000) + " to " + Printable(to, 1000);
    if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return true;
    if (!CannotDo(errno)) return ErrnoError(errno, what);
    // NFS has no such rename, but links that are made by one client only.
    if (link(from.c_str(), to.c_str()) != 0) {
      if (CannotDo(errno) || errno == EPERM) return false;
      const int number = errno;
      // The answer to a link that was made may have been lost, and the call sent again.
      if (number != EEXIST || !SameFile(from, to)) return ErrnoError(number, what);
    }
    if (unlink(from.c_str()) != 0) return Failed("remove", from);
    return true;
  }

  Status Remove(const std::string& path) override {
    if (unlink(path.c_str()) != 0) return Failed("remove", path);
    return {};
  }

  Status SyncFolder(const std::string& path) override {
    const Fd folder(Retry([&] { return open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
    if (!folder.ok()) return Failed("open folder", path);
    if (!SyncedFolder(folder.get())) return Failed("sync folder", path);
    return {};
  }

  Status MakeFolders(const std::string& path) override {
    struct stat st {};
    if (stat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode)) return {};
    const std::string parent = FolderOf(path);
    if (parent != path && parent != ".") {
      if (Status made = MakeFolders(parent); !made.ok()) return made;
    }
    if (mkdir(path.c_str(), kFolderMode) != 0) {
      const int number = errno;
      // Another process may have been faster.
      const bool there = stat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode);
      if (number != EEXIST || !there) {
        errno = number;
        return Failed("create folder", path);
      }
    }
    return SyncFolder(parent);
  }

  Result<std::vector<std::string>> List(const std::string& path) const override {
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(path.c_str()), closedir);
    if (!folder) return Failed("list", path);
    std::vector<std::string> names;
    for (;;) {
      errno = 0;
      const dirent* entry = readdir(folder.get());
      if (entry == nullptr) break;
      std::string name = entry->d_name;
      if (name != "." && name != "..") names.push_back(std::move(name));
    }
    if (errno != 0) return Failed("list", path);
    std::sort(names.begin(), names.end());
    return names;
  }

  Result<bool> Exists(const std::string& path) const override {
    struct stat st {};
    if (stat(path.c_str(), &st) == 0) return true;
    if (errno == ENOENT || errno == ENOTDIR) return false;
    return Failed("stat", path);
  }

  Result<FileFacts> Stat(const std::string& path) const override {
    const std::optional<FileFacts> facts = FactsOf(AT_FDCWD, path.c_str(), 0);
    if (!facts) return Failed("stat", path);
    return *facts;
  }

  Result<std::string> RealPath(const std::string& path) const override {
    const std::unique_ptr<char, decltype(&free)> real(realpath(path.c_str(), nullptr), &free);
    if (!real) return Failed("resolve", path);
    return std::string(real.get());
  }

  Result<std::unique_ptr<Folder>> OpenFolder(const std::string& path, Links links) const override {
    constexpr int kFolder = O_DIRECTORY | O_CLOEXEC;
    Fd folder(Retry([&] { return open(path.c_str(), O_RDONLY | kFolder); }));
    // It may be searched and written to, though not listed.
    if (!folder.ok() && errno == EACCES) folder = Fd(open(path.c_str(), O_PATH | kFolder));
    if (!folder.ok()) return Failed("open folder", path);
    return MakeSystemFolder(std::move(folder), path, links);
  }

  Result<std::unique_ptr<File>> Lock(const std::string& path) override {
    Fd lock(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
    if (!lock.ok()) return Failed("open", path);
    if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return Failed("lock", path);
    return MakeSystemFile(std::move(lock), path);
  }

  bool IsLocked(const std::string& path) const override {
    const Fd lock(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (!lock.ok()) return errno != ENOENT;
    return flock(lock.get(), LOCK_SH | LOCK_NB) != 0;
  }

  Result<uint64_t> FreeSpace(const std::string& path) const override {
    struct statvfs st {};
    if (Retry([&] { return statvfs(path.c_str(), &st); }) != 0) return Failed("statfs", path);
    return uint64_t{st.f_bavail} * st.f_frsize;
  }
};

}  // namespace

std::unique_ptr<Files> MakeSystemFiles() { return std::make_unique<SystemFiles>(); }

}  // namespace parallelrun
