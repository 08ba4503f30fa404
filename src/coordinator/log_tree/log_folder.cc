#include "coordinator/log_tree/log_folder.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <spdlog/fmt/fmt.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "base/escape.h"
#include "base/random.h"

namespace parallelrun {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxShown = 300;
constexpr size_t kBlock = size_t{1} << 16;

// Opens `name` below the folder `root` without ever following a link or leaving the folder.
int OpenBelow(int root, const std::string& name, uint64_t flags, uint64_t mode) {
  open_how how{};
  how.flags = flags | O_CLOEXEC;
  how.mode = mode;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  return static_cast<int>(syscall(SYS_openat2, root, name.c_str(), &how, sizeof how));
}

// One level at a time, each opened without following links; what fails shows in the open that
// follows.
void MakeFoldersOf(int root, const std::string& name) {
  for (size_t slash = name.find('/'); slash != std::string::npos;
       slash = name.find('/', slash + 1)) {
    const fs::path folder = name.substr(0, slash);
    const Fd parent(folder.has_parent_path()
                        ? OpenBelow(root, folder.parent_path(), O_PATH | O_DIRECTORY, 0)
                        : dup(root));
    if (!parent.ok()) return;
    mkdirat(parent.get(), folder.filename().c_str(), 0755);
  }
}

std::string Last(const std::string& name) { return fs::path(name).filename(); }

Status WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoError(errno, "write");
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

}  // namespace

Result<LogFolder> LogFolder::Open(const std::string& path) {
  std::error_code ignored;  // the open tells
  fs::create_directories(path, ignored);
  Fd root(open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root.ok()) return ErrnoError(errno, "open the log folder " + Printable(path, kMaxShown));
  return LogFolder(std::move(root), path);
}

Error LogFolder::Failed(int number, const char* call, const std::string& name) const {
  Error error =
      ErrnoError(number, fmt::format("{} {}/{}", call, path_, Printable(name, kMaxShown)));
  if (number == ELOOP || number == EXDEV) {
    error.code = Code::kPermission;
    error.message += " (a link is in the way; remove it)";
  }
  return error;
}

Result<Fd> LogFolder::OpenFile(const std::string& name, int flags) const {
  const auto how = static_cast<uint64_t>(flags | O_NOFOLLOW | O_NONBLOCK);
  const bool makes = (flags & O_CREAT) != 0;
  Fd file(OpenBelow(root_->get(), name, how, makes ? 0644 : 0));
  if (!file.ok() && errno == ENOENT && makes) {
    MakeFoldersOf(root_->get(), name);
    file = Fd(OpenBelow(root_->get(), name, how, 0644));
  }
  if (!file.ok()) return Failed(errno, "open", name);
  return file;
}

Status LogFolder::MakeFolder(const std::string& name) const {
  MakeFoldersOf(root_->get(), name + "/");
  const Fd folder(OpenBelow(root_->get(), name, O_PATH | O_DIRECTORY, 0));
  return folder.ok() ? Status() : Status(Failed(errno, "make", name));
}

Result<Fd> LogFolder::Parent(const std::string& name) const {
  const fs::path parent = fs::path(name).parent_path();
  Fd folder(parent.empty() ? dup(root_->get())
                           : OpenBelow(root_->get(), parent, O_PATH | O_DIRECTORY, 0));
  if (!folder.ok()) return Failed(errno, "open", parent);
  return folder;
}

Status LogFolder::Append(const std::string& name, std::string_view text) const {
  const Result<Fd> file = OpenFile(name, O_WRONLY | O_CREAT | O_APPEND);
  if (!file.ok()) return file.error();
  const Status written = WriteAll(file->get(), text);
  return written.ok() ? written : Status(written.error().With(path_ + "/" + name));
}

Status LogFolder::Publish(const std::string& name, std::string_view text) const {
  NewLogFile file(*this, name);
  file.Add(text);
  return file.Publish();
}

Status LogFolder::Rename(const std::string& from, const std::string& to) const {
  const Result<Fd> parent = Parent(to);
  if (!parent.ok()) return parent.error();
  if (renameat(parent->get(), Last(from).c_str(), parent->get(), Last(to).c_str()) != 0) {
    return Failed(errno, "make", to);
  }
  return {};
}

Status LogFolder::Remove(const std::string& name) const {
  const Result<Fd> parent = Parent(name);
  if (!parent.ok()) return parent.error();
  if (unlinkat(parent->get(), Last(name).c_str(), 0) != 0) return Failed(errno, "remove", name);
  return {};
}

void LogFolder::RemoveAll(const std::string& name) const {
  const Result<Fd> parent = Parent(name);
  if (!parent.ok()) return;
  std::error_code ignored;
  fs::remove_all(fmt::format("/proc/self/fd/{}/{}", parent->get(), Last(name)), ignored);
}

std::vector<std::string> LogFolder::List(const std::string& name) const {
  std::vector<std::string> names;
  const Result<Fd> folder = OpenFile(name.empty() ? "." : name, O_RDONLY | O_DIRECTORY);
  if (!folder.ok()) return names;
  std::error_code error;
  fs::directory_iterator it(fmt::format("/proc/self/fd/{}", folder->get()), error);
  for (; !error && it != fs::directory_iterator(); it.increment(error)) {
    names.push_back(it->path().filename());
  }
  return names;
}

void LogFolder::Link(const std::string& target, const std::string& name) const {
  const Result<Fd> parent = Parent(name);
  if (!parent.ok()) return;
  [[maybe_unused]] const int made = symlinkat(target.c_str(), parent->get(), Last(name).c_str());
}

Status LogFolder::SyncFolderOf(const std::string& name) const {
  const std::string parent = fs::path(name).parent_path();
  const Result<Fd> folder = OpenFile(parent.empty() ? "." : parent, O_RDONLY | O_DIRECTORY);
  if (!folder.ok()) return folder.error();
  // Some network file systems cannot sync a folder: their entries are durable on their own.
  if (fsync(folder->get()) != 0 && errno != EINVAL && errno != ENOTSUP) {
    return Failed(errno, "sync the folder of", name);
  }
  return {};
}

NewLogFile::NewLogFile(LogFolder folder, std::string name)
    : folder_(std::move(folder)), name_(std::move(name)), beside_(name_ + ".tmp-" + RandomHex(8)) {
  Result<Fd> file = folder_.OpenFile(beside_, O_WRONLY | O_CREAT | O_EXCL);
  if (file.ok()) {
    file_ = std::move(*file);
  } else {
    status_ = file.error();
  }
}

NewLogFile::~NewLogFile() {
  if (!published_ && file_.ok()) (void)folder_.Remove(beside_);
}

void NewLogFile::Add(std::string_view text) {
  waiting_.append(text);
  if (waiting_.size() >= kBlock) Write();
}

void NewLogFile::Write() {
  if (status_.ok()) status_ = WriteAll(file_.get(), waiting_);
  waiting_.clear();
}

Status NewLogFile::Publish() {
  Write();
  if (status_.ok() && fsync(file_.get()) != 0) status_ = ErrnoError(errno, "sync");
  if (status_.ok()) status_ = folder_.Rename(beside_, name_);
  published_ = status_.ok();
  if (!status_.ok()) return status_.error().With(folder_.path() + "/" + name_);
  return folder_.SyncFolderOf(name_);
}

}  // namespace parallelrun
