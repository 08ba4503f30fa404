#include "coordinator/log_tree/log_sink.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <spdlog/fmt/fmt.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>

#include "base/escape.h"

namespace parallelrun {
namespace {

constexpr size_t kMaxSegments = 8;
constexpr size_t kMaxSegmentBytes = 255;

// Opens `name` below the folder `root` without ever following a link or leaving the folder.
int OpenBelow(int root, const std::string& name, uint64_t flags, uint64_t mode) {
  open_how how{};
  how.flags = flags | O_CLOEXEC;
  how.mode = mode;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  return static_cast<int>(syscall(SYS_openat2, root, name.c_str(), &how, sizeof how));
}

std::string Join(const std::vector<std::string>& segments, size_t count) {
  std::string path;
  for (size_t i = 0; i < count; ++i) path += (i > 0 ? "/" : "") + segments[i];
  return path;
}

// One level at a time, each opened without following links; what fails shows in the open that
// follows.
void MakeFolders(int root, const std::vector<std::string>& segments) {
  for (size_t i = 0; i + 1 < segments.size(); ++i) {
    const int parent =
        i == 0 ? dup(root) : OpenBelow(root, Join(segments, i), O_PATH | O_DIRECTORY, 0);
    if (parent < 0) return;
    mkdirat(parent, segments[i].c_str(), 0755);
    close(parent);
  }
}

}  // namespace

Result<LogSink> LogSink::Open(const std::string& root) {
  std::error_code error;
  std::filesystem::create_directories(root, error);
  const int fd = open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return ErrnoError(errno, "open the log folder " + root);
  return LogSink(fd);
}

LogSink::LogSink(LogSink&& other) noexcept : root_(std::exchange(other.root_, -1)) {}

LogSink::~LogSink() {
  if (root_ >= 0) close(root_);
}

bool LogSink::Allowed(uint32_t node, const std::vector<std::string>& segments) {
  if (segments.size() < 3 || segments.size() > kMaxSegments) {
    // perf/<node>/file has three segments too.
    return false;
  }
  for (const std::string& segment : segments) {
    if (segment.empty() || segment.size() > kMaxSegmentBytes || segment == "." || segment == "..") {
      return false;
    }
    for (const char c : segment) {
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '/') return false;
    }
  }
  const std::string own = std::to_string(node);
  if (segments[0] == "perf") return segments[1] == own;
  if (segments.size() < 4 || segments[2] != own) return false;
  if (segments[0] == "user") {
    return segments[1] == "stdout" || segments[1] == "stderr" || segments[1] == "error" ||
           segments[1] == "entry_script_log" || segments[1] == "files";
  }
  return segments[0] == "sys" && (segments[1] == "node" || segments[1] == "error");
}

Status LogSink::Write(uint32_t node, const std::vector<std::string>& segments, uint64_t offset,
                      std::string_view bytes, bool truncate) {
  if (!Allowed(node, segments)) {
    return Error{Code::kPermission, fmt::format("node {} may not write this log path", node)};
  }
  const std::string path = Join(segments, segments.size());
  const uint64_t flags = O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | (truncate ? O_TRUNC : 0);
  int fd = OpenBelow(root_, path, flags, 0644);
  if (fd < 0 && errno == ENOENT) {
    MakeFolders(root_, segments);
    fd = OpenBelow(root_, path, flags, 0644);
  }
  if (fd < 0) {
    const int reason = errno;
    Error error = ErrnoError(reason, "open the log file " + Printable(path, 300));
    if (reason == ELOOP || reason == EXDEV) error.code = Code::kPermission;
    return error;
  }
  Status status;
  while (!bytes.empty()) {
    const ssize_t n = pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      status = ErrnoError(errno, "write the log file " + Printable(path, 300));
      break;
    }
    offset += static_cast<uint64_t>(n);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  close(fd);
  return status;
}

void ClearLogTree(const std::string& root) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  for (const char* part : {"user", "perf", "sys/error", "sys/job_report"}) {
    fs::remove_all(fs::path(root) / part, ignored);
  }
  for (const auto& entry : fs::directory_iterator(root, ignored)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("job_") && name.ends_with(".txt")) fs::remove(entry.path(), ignored);
  }
  for (const auto& node : fs::directory_iterator(fs::path(root) / "sys/node", ignored)) {
    for (const auto& entry : fs::directory_iterator(node.path(), ignored)) {
      if (entry.path().filename() != "_main.txt") fs::remove_all(entry.path(), ignored);
    }
  }
}

}  // namespace parallelrun
