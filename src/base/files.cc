#include "base/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/escape.h"
#include "base/random.h"

namespace parallelrun {
namespace {

constexpr mode_t kFileMode = 0666;  // the umask takes from these
constexpr mode_t kFolderMode = 0777;

Error Failed(const char* call, const std::string& path) {
  const int number = errno;  // before Printable may change it
  return ErrnoError(number, std::string(call) + " " + Printable(path, 1000));
}

template <typename Call>
auto Retry(Call call) {
  for (;;) {
    const auto result = call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

// The folder that holds `path`.
std::string Parent(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

bool CannotDo(int number) { return number == EINVAL || number == ENOSYS || number == EOPNOTSUPP; }

bool SameFile(const std::string& one, const std::string& other) {
  struct stat a {};
  struct stat b {};
  return lstat(one.c_str(), &a) == 0 && lstat(other.c_str(), &b) == 0 && a.st_dev == b.st_dev &&
         a.st_ino == b.st_ino;
}

class SystemFile final : public File {
 public:
  SystemFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  ~SystemFile() override { close(fd_); }
  SystemFile(const SystemFile&) = delete;
  SystemFile& operator=(const SystemFile&) = delete;

  Status WriteAt(uint64_t offset, std::string_view bytes) override {
    while (!bytes.empty()) {
      const ssize_t n = Retry(
          [&] { return pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset)); });
      if (n < 0) return Failed("write", path_);
      bytes.remove_prefix(static_cast<size_t>(n));
      offset += static_cast<uint64_t>(n);
    }
    return {};
  }

  Result<std::string> ReadAt(uint64_t offset, size_t size) const override {
    std::string bytes(size, '\0');
    size_t got = 0;
    while (got < size) {
      const ssize_t n = Retry([&] {
        return pread(fd_, bytes.data() + got, size - got, static_cast<off_t>(offset + got));
      });
      if (n < 0) return Failed("read", path_);
      if (n == 0) break;
      got += static_cast<size_t>(n);
    }
    bytes.resize(got);
    return bytes;
  }

  Status Sync() override {
    if (Retry([&] { return fdatasync(fd_); }) != 0) return Failed("sync", path_);
    return {};
  }

  Result<uint64_t> Size() const override {
    struct stat st {};
    if (fstat(fd_, &st) != 0) return Failed("stat", path_);
    return static_cast<uint64_t>(st.st_size);
  }

  Status Reserve(uint64_t size) override {
    const int rc =
        Retry([&] { return fallocate(fd_, FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(size)); });
    if (rc != 0 && errno != EOPNOTSUPP && errno != ENOSYS) return Failed("reserve room in", path_);
    return {};
  }

  Status Trim() override {
    const Result<uint64_t> size = Size();
    if (!size.ok()) return size.error();
    // The same length as before: the system frees what lies behind it.
    if (Retry([&] { return ftruncate(fd_, static_cast<off_t>(*size)); }) != 0) {
      return Failed("give back the reserve of", path_);
    }
    return {};
  }

 private:
  const int fd_;
  const std::string path_;
};

Result<std::unique_ptr<File>> OpenFile(const std::string& path, int flags, const char* call) {
  const int fd = Retry([&] { return open(path.c_str(), flags | O_CLOEXEC, kFileMode); });
  if (fd < 0) return Failed(call, path);
  return std::unique_ptr<File>(std::make_unique<SystemFile>(fd, path));
}

class SystemFiles final : public Files {
 public:
  Result<std::unique_ptr<File>> CreateExclusive(const std::string& path) override {
    return OpenFile(path, O_RDWR | O_CREAT | O_EXCL, "create");
  }

  Result<std::unique_ptr<File>> Open(const std::string& path) override {
    return OpenFile(path, O_RDWR, "open");
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
    const int fd = Retry([&] { return open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
    if (fd < 0) return Failed("open folder", path);
    const int rc = Retry([&] { return fsync(fd); });
    const int number = errno;
    close(fd);
    // Some network file systems cannot sync a folder: their entries are durable on their own.
    if (rc != 0 && number != EINVAL && number != ENOTSUP) {
      errno = number;
      return Failed("sync folder", path);
    }
    return {};
  }

  Status MakeFolders(const std::string& path) override {
    struct stat st {};
    if (stat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode)) return {};
    const std::string parent = Parent(path);
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

  Result<uint64_t> FreeSpace(const std::string& path) const override {
    struct statvfs st {};
    if (Retry([&] { return statvfs(path.c_str(), &st); }) != 0) return Failed("statfs", path);
    return uint64_t{st.f_bavail} * st.f_frsize;
  }
};

Status WriteNew(Files& files, const std::string& path, std::string_view bytes) {
  auto file = files.CreateExclusive(path);
  if (!file.ok()) return file.error();
  if (Status written = (*file)->WriteAt(0, bytes); !written.ok()) return written;
  return (*file)->Sync();
}

}  // namespace

std::unique_ptr<Files> MakeSystemFiles() { return std::make_unique<SystemFiles>(); }

Status PublishFile(Files& files, const std::string& path, std::string_view bytes) {
  // A fresh name: what an earlier crash left behind must not be in the way.
  const std::string temporary = path + ".tmp-" + RandomHex(8);
  Status done = WriteNew(files, temporary, bytes);
  if (done.ok()) done = files.Rename(temporary, path);
  if (!done.ok()) {
    (void)files.Remove(temporary);  // the error to report is the first one
    return done;
  }
  return files.SyncFolder(Parent(path));
}

}  // namespace parallelrun
