#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "base/escape.h"
#include "base/open_below.h"
#include "base/system_files.h"

namespace parallelrun {
namespace {

EntryKind KindOfEntry(unsigned char type) {
  switch (type) {
    case DT_REG: return EntryKind::kFile;
    case DT_DIR: return EntryKind::kFolder;
    case DT_LNK: return EntryKind::kLink;
    case DT_UNKNOWN: return EntryKind::kUnknown;
    default: return EntryKind::kOther;
  }
}

class SystemFolder final : public Folder {
 public:
  SystemFolder(Fd fd, std::string path, Links links)
      : fd_(std::move(fd)), path_(std::move(path)), links_(links) {}

  Status Entries(const EachEntry& each) const override {
    // A copy of the descriptor, which closedir closes, shares its place in the folder.
    Fd copy(fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0));
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(fdopendir(copy.get()), closedir);
    // EBADF: it could be opened for searching only.
    if (!folder) return Failed(errno == EBADF ? EACCES : errno, "list", ".");
    copy.Release();
    rewinddir(folder.get());
    std::string name;
    for (;;) {
      errno = 0;
      const dirent* entry = readdir(folder.get());
      if (entry == nullptr) break;
      name = entry->d_name;
      if (name == "." || name == "..") continue;
      if (Status told = each(name, KindOfEntry(entry->d_type)); !told.ok()) return told;
    }
    return errno == 0 ? Status() : Failed(errno, "list", ".");
  }

  Result<FileFacts> Stat(const std::string& name, Links links) const override {
    std::optional<FileFacts> facts;
    // A name alone leads nowhere else, so one call is enough: logs and listings ask this of each
    // file.
    const bool alone = name.find('/') == std::string::npos && name != "..";
    if (links_ == Links::kRefuse && !alone) {
      const Fd found(OpenBelow(fd_.get(), name, O_PATH, 0));
      if (found.ok()) facts = FactsOf(found.get(), "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC);
    } else {
      const bool refuse = links == Links::kRefuse || links_ == Links::kRefuse;
      const int follow = refuse ? AT_SYMLINK_NOFOLLOW : 0;
      facts = FactsOf(fd_.get(), name.c_str(), AT_STATX_DONT_SYNC | follow);
    }
    if (!facts) return Failed(errno, "stat", name);
    return *facts;
  }

  Result<std::unique_ptr<Folder>> OpenFolder(const std::string& name) const override {
    Fd found(Open(name, O_RDONLY | O_DIRECTORY));
    if (!found.ok()) return Failed(errno, "open folder", name);
    return std::unique_ptr<Folder>(
        std::make_unique<SystemFolder>(std::move(found), PathOf(name), links_));
  }

  Result<std::unique_ptr<File>> OpenRead(const std::string& name) const override {
    return OpenFile(name, O_RDONLY, "open");
  }

  Result<std::unique_ptr<File>> CreateExclusive(const std::string& name) override {
    return OpenFile(name, O_RDWR | O_CREAT | O_EXCL, "create");
  }

  Result<std::unique_ptr<File>> OpenOrCreate(const std::string& name) override {
    return OpenFile(name, O_RDWR | O_CREAT, "open");
  }

  Status Append(const std::string& name, std::string_view bytes) override {
    const Fd file(Open(name, O_WRONLY | O_CREAT | O_APPEND));
    if (!file.ok()) return Failed(errno, "open", name);
    while (!bytes.empty()) {
      const ssize_t n = Retry([&] { return write(file.get(), bytes.data(), bytes.size()); });
      if (n < 0) return Failed(errno, "write", name);
      bytes.remove_prefix(static_cast<size_t>(n));
    }
    return {};
  }

  Status MakeFolder(const std::string& name) override {
    return InParent("create folder", name, [](int parent, const char* last) {
      return mkdirat(parent, last, kFolderModeBelow);
    });
  }

  Status Rename(const std::string& from, const std::string& to) override {
    const Fd source(Open(FolderOf(from), O_PATH | O_DIRECTORY));
    if (!source.ok()) return Failed(errno, "open the folder of", from);
    const std::string last = LastOf(from);
    return InParent("make", to, [&](int parent, const char* name) {
      return renameat(source.get(), last.c_str(), parent, name);
    });
  }

  Status Remove(const std::string& name) override {
    return InParent("remove", name, [](int parent, const char* last) {
      const int removed = unlinkat(parent, last, 0);
      return removed != 0 && errno == EISDIR ? unlinkat(parent, last, AT_REMOVEDIR) : removed;
    });
  }

  Status Link(const std::string& target, const std::string& name) override {
    return InParent("link", name, [&](int parent, const char* last) {
      return symlinkat(target.c_str(), parent, last);
    });
  }

  Status SyncFolderOf(const std::string& name) override {
    const Fd folder(Open(FolderOf(name), O_RDONLY | O_DIRECTORY));
    if (!folder.ok()) return Failed(errno, "open the folder of", name);
    if (!SyncedFolder(folder.get())) return Failed(errno, "sync the folder of", name);
    return {};
  }

 private:
  static constexpr mode_t kFileModeBelow = 0644;
  static constexpr mode_t kFolderModeBelow = 0755;

  static std::string LastOf(const std::string& name) { return name.substr(name.rfind('/') + 1); }
  std::string PathOf(const std::string& name) const {
    return name == "." ? path_ : (path_ == "/" ? path_ : path_ + "/") + name;
  }

  int Open(const std::string& name, int flags) const {
    if (links_ == Links::kRefuse) {
      return Retry([&] { return OpenBelow(fd_.get(), name, flags, kFileModeBelow); });
    }
    return Retry([&] {
      return openat(fd_.get(), name.c_str(), flags | O_CLOEXEC | O_NONBLOCK, kFileModeBelow);
    });
  }

  Result<std::unique_ptr<File>> OpenFile(const std::string& name, int flags,
                                         const char* call) const {
    const int fd = Open(name, flags);
    if (fd < 0) return Failed(errno, call, name);
    return MakeSystemFile(Fd(fd), PathOf(name));
  }

  // Calls `act` with the folder that holds `name`, and the last part of that.
  template <typename Act>
  Status InParent(const char* call, const std::string& name, Act act) const {
    const Fd parent(Open(FolderOf(name), O_PATH | O_DIRECTORY));
    if (!parent.ok() || act(parent.get(), LastOf(name).c_str()) != 0) {
      return Failed(errno, call, name);
    }
    return {};
  }

  Error Failed(int number, const char* call, const std::string& name) const {
    const std::string what = std::string(call) + " " + Printable(PathOf(name), 1000);
    return links_ == Links::kRefuse ? ErrorBelow(number, what) : ErrnoError(number, what);
  }

  const Fd fd_;
  const std::string path_;
  const Links links_;
};

}  // namespace

// Some network file systems cannot sync a folder: their entries are durable on their own.
bool SyncedFolder(int folder) {
  return Retry([&] { return fsync(folder); }) == 0 || errno == EINVAL || errno == ENOTSUP;
}

std::unique_ptr<Folder> MakeSystemFolder(Fd fd, std::string path, Links links) {
  return std::make_unique<SystemFolder>(std::move(fd), std::move(path), links);
}

}  // namespace parallelrun
