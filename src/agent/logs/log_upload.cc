#include "agent/logs/log_upload.h"

#include <dirent.h>
#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "agent/logs/log_trim.h"
#include "agent/logs/log_version.h"
#include "base/escape.h"
#include "base/http/target.h"

namespace parallelrun::agent {
namespace {

constexpr size_t kMaxPut = size_t{1} << 20;
constexpr uint64_t kMaxFile = uint64_t{1} << 30;
constexpr size_t kMaxSegments = 8;
constexpr size_t kMaxSegment = 255;
constexpr Duration kPutTimeout = seconds(30);

// Whether a later round may reach what could not be looked at or opened: not what has gone, is a
// link by now, or is kept from us.
bool MayPass(int error) {
  return error != ENOENT && error != ELOOP && error != EACCES && error != EPERM && error != ENXIO;
}

std::vector<std::string> Split(const std::string& path) {
  std::vector<std::string> segments;
  for (size_t start = 0; start <= path.size();) {
    const size_t end = std::min(path.find('/', start), path.size());
    segments.push_back(path.substr(start, end - start));
    start = end + 1;
  }
  return segments;
}

}  // namespace

std::optional<std::string> LogTarget(const std::string& relative, uint32_t node) {
  static constexpr std::array kFolders{"user/stdout/", "user/stderr/", "user/entry_script_log/",
                                       "user/error/",  "user/files/",  "sys/node/",
                                       "sys/error/",   "perf/"};
  const std::string index = std::to_string(node) + "/";
  std::string target;
  for (const char* folder : kFolders) {
    if (relative.starts_with(folder + index)) target = relative;
  }
  if (target.empty()) target = "user/files/" + index + relative;
  const std::vector<std::string> segments = Split(target);
  if (segments.size() > kMaxSegments) return std::nullopt;
  for (const std::string& segment : segments) {
    if (segment.empty() || segment.size() > kMaxSegment) return std::nullopt;
  }
  return target;
}

bool IsRotated(const std::string& target) {
  return target.starts_with("user/stdout/") || target.starts_with("user/stderr/") ||
         (target.starts_with("sys/node/") && target.ends_with(".txt"));
}

std::string SecondHalf(const std::string& target) {
  const size_t dot = target.rfind('.');
  if (dot == std::string::npos || target.find('/', dot) != std::string::npos) return target + ".1";
  return target.substr(0, dot) + ".1" + target.substr(dot);
}

// One thread runs them; the uploader asks it to end, and may be gone before it does.
class LogUploader::Rounds {
 public:
  Rounds(std::string folder, uint32_t node, std::unique_ptr<HttpClient> client, Duration interval)
      : folder_(std::move(folder)), node_(node), client_(std::move(client)), interval_(interval) {}

  void Run();
  // From other threads.
  void SetLimit(uint64_t bytes) { limit_ = bytes; }
  bool Finish(Duration limit);
  void Stop();

 private:
  bool Round();
  bool ScanFolder(int folder_fd, const std::string& relative, int depth);
  // How far a file is uploaded.
  struct Sent {
    bool IsAllOf(const struct stat& info) const;

    uint64_t bytes = 0;    // of the local file
    bool rotated = false;  // kept in two halves: appended to, begun again at most
    uint64_t offset = 0;   // in the target's half
    bool second = false;   // half
    LogVersion version;    // of a file that is not rotated
    bool stale = false;    // the target holds what the file held before
  };
  void LookAt(int fd, const struct stat& info, Sent& sent);
  bool UploadFile(int fd, const std::string& relative);
  bool UploadRange(int fd, const std::string& target, Sent& sent, uint64_t end, bool& hopeless);
  bool UploadHalves(int fd, const std::string& target, Sent& sent, uint64_t end, bool& hopeless);
  bool Put(const std::string& target, uint64_t offset, bool truncate, std::string bytes,
           bool& hopeless);
  bool Stopping();

  const std::string folder_;
  const uint32_t node_;
  const std::unique_ptr<HttpClient> client_;
  const Duration interval_;
  std::atomic<uint64_t> limit_{uint64_t{1} << 30};
  std::map<std::string, Sent> sent_;  // by relative path; only on the thread
  std::set<std::string> skipped_;     // cannot be uploaded; only on the thread

  std::mutex mutex_;
  std::condition_variable changed_;
  bool last_round_ = false;
  bool stop_ = false;
  bool complete_ = false;
};

LogUploader::LogUploader(std::string folder, uint32_t node, std::unique_ptr<HttpClient> client,
                         Duration interval)
    : rounds_(std::make_shared<Rounds>(std::move(folder), node, std::move(client), interval)),
      thread_("log upload", [rounds = rounds_] { rounds->Run(); }) {}

LogUploader::~LogUploader() {
  rounds_->Stop();
  if (!thread_.JoinOrLeave(kEndLimit)) {
    spdlog::warn("the upload of logs does not end: does the disk of the logs hang?");
  }
}

void LogUploader::SetLimit(uint64_t bytes) { rounds_->SetLimit(bytes); }

bool LogUploader::Finish(Duration limit) { return rounds_->Finish(limit); }

void LogUploader::Rounds::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  client_->Cancel();
}

bool LogUploader::Rounds::Finish(Duration limit) {
  std::unique_lock lock(mutex_);
  last_round_ = true;
  changed_.notify_all();
  return changed_.wait_for(lock, limit, [this] { return complete_; });
}

void LogUploader::Rounds::Run() {
  for (bool again = false;;) {
    bool last = false;
    {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, interval_, [&] { return stop_ || (last_round_ && !again); });
      if (stop_) return;
      last = last_round_;
    }
    const bool complete = Round();
    if (!last) continue;
    again = !complete;  // the coordinator may be back before the limit: after a pause
    if (again) continue;
    const std::lock_guard lock(mutex_);
    complete_ = true;
    changed_.notify_all();
    return;
  }
}

bool LogUploader::Rounds::Round() {
  const int fd = open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return errno == ENOENT;
  return ScanFolder(fd, "", 0);
}

// Owns `folder_fd`. False when something is left that a later round may upload.
bool LogUploader::Rounds::ScanFolder(int folder_fd, const std::string& relative, int depth) {
  DIR* folder = fdopendir(folder_fd);
  if (folder == nullptr) return close(folder_fd), false;
  bool complete = true;
  for (;;) {
    errno = 0;
    const dirent* const entry = readdir(folder);
    if (entry == nullptr) {
      complete = complete && errno == 0;
      break;
    }
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    const std::string path = relative.empty() ? name : relative + "/" + name;
    if (skipped_.contains(path)) continue;
    struct stat info {};
    if (fstatat(dirfd(folder), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) {
      complete = complete && !MayPass(errno);
      continue;
    }
    if (!S_ISDIR(info.st_mode) && !S_ISREG(info.st_mode)) continue;
    const auto known = sent_.find(path);
    if (S_ISREG(info.st_mode) &&
        (known == sent_.end() ? info.st_size == 0 : known->second.IsAllOf(info))) {
      continue;
    }
    // The kind was looked at by name: O_NOFOLLOW and O_NONBLOCK keep a swapped entry harmless.
    const int fd =
        openat(dirfd(folder), entry->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
      complete = complete && !MayPass(errno);
      continue;
    }
    if (S_ISDIR(info.st_mode) && depth < static_cast<int>(kMaxSegments)) {
      complete = ScanFolder(fd, path, depth + 1) && complete;
      continue;
    }
    const bool uploaded = fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || UploadFile(fd, path);
    close(fd);
    complete = uploaded && complete;
  }
  closedir(folder);
  return complete;
}

bool LogUploader::Rounds::UploadFile(int fd, const std::string& relative) {
  const std::optional<std::string> target = LogTarget(relative, node_);
  if (!target) {
    skipped_.insert(relative);
    spdlog::warn("the log file {} is not uploaded: its path has too many or too long segments",
                 Printable(relative, kShownLong));
    return true;
  }
  Sent& sent = sent_[relative];
  struct stat info {};
  fstat(fd, &info);
  // What comes later is the next round's: one file that grows fast must not hold up the others.
  const auto end = static_cast<uint64_t>(info.st_size);
  const bool rotated = sent.rotated = IsRotated(*target);
  if (rotated) {
    if (end < sent.bytes) sent.bytes = 0;  // begun again
  } else {
    LookAt(fd, info, sent);
  }
  bool hopeless = false;
  const bool uploaded = rotated ? UploadHalves(fd, *target, sent, end, hopeless)
                                : UploadRange(fd, *target, sent, std::min(end, kMaxFile), hopeless);
  const bool full = uploaded && !rotated && end > kMaxFile;
  if (full) {
    spdlog::warn("the log file {} is above 1 GiB: the rest is not uploaded",
                 Printable(relative, kShownLong));
  }
  if (full || hopeless) skipped_.insert(relative);
  return uploaded || hopeless;
}

bool LogUploader::Rounds::Sent::IsAllOf(const struct stat& info) const {
  return bytes == static_cast<uint64_t>(info.st_size) && (rotated || version.Settled(info));
}

// Begins again with a file that holds no longer what was sent.
void LogUploader::Rounds::LookAt(int fd, const struct stat& info, Sent& sent) {
  LogVersion version(fd, info);
  if (sent.version.known() && !sent.version.ContinuedBy(fd, info)) {
    sent.bytes = 0;
    sent.stale = true;
  }
  version.CountLooks(sent.version);
  sent.version = version;
}

bool LogUploader::Rounds::Stopping() {
  const std::lock_guard lock(mutex_);
  return stop_;
}

bool LogUploader::Rounds::UploadRange(int fd, const std::string& target, Sent& sent, uint64_t end,
                                      bool& hopeless) {
  while (sent.bytes < end || sent.stale) {
    std::string bytes(std::min<uint64_t>(kMaxPut, end - sent.bytes), '\0');
    const ssize_t n = pread(fd, bytes.data(), bytes.size(), static_cast<off_t>(sent.bytes));
    if (n < 0) return false;
    if (n == 0 && !sent.stale) return true;
    bytes.resize(static_cast<size_t>(n));
    if (!Put(target, sent.bytes, sent.stale, std::move(bytes), hopeless)) return false;
    sent.stale = false;
    sent.bytes += static_cast<uint64_t>(n);
    if (Stopping()) return false;
  }
  return true;
}

bool LogUploader::Rounds::UploadHalves(int fd, const std::string& target, Sent& sent, uint64_t end,
                                       bool& hopeless) {
  const uint64_t half = std::max<uint64_t>(limit_ / 2, 1);
  while (sent.bytes < end) {
    Sent next = sent;
    std::string bytes;
    next.bytes = KeptFrom(fd, sent.bytes);
    if (next.bytes > sent.bytes) {
      bytes = fmt::format("\n[ParallelRun: {} bytes are missing here]\n", next.bytes - sent.bytes);
    }
    const bool full = sent.offset >= half;
    if (full) {
      next.second = !sent.second;
      next.offset = 0;
      bytes += fmt::format("[ParallelRun: byte {} of this output and what follows]\n", next.bytes);
    }
    const size_t mark = bytes.size();
    bytes.resize(mark + std::min<uint64_t>(kMaxPut, half - next.offset));
    const ssize_t n =
        pread(fd, bytes.data() + mark, bytes.size() - mark, static_cast<off_t>(next.bytes));
    if (n < 0) return false;
    if (n == 0) return true;
    if (KeptFrom(fd, next.bytes) != next.bytes) continue;  // dropped while it was read
    bytes.resize(mark + static_cast<size_t>(n));
    next.bytes += static_cast<uint64_t>(n);
    const uint64_t offset = next.offset;
    next.offset += bytes.size();
    if (!Put(next.second ? SecondHalf(target) : target, offset, full, std::move(bytes), hopeless)) {
      return false;
    }
    sent = next;
    if (Stopping()) return false;
  }
  return true;
}

bool LogUploader::Rounds::Put(const std::string& target, uint64_t offset, bool truncate,
                              std::string bytes, bool& hopeless) {
  HttpRequest request;
  request.method = "PUT";
  request.path = fmt::format("/v1/nodes/{}/logs/{}", node_, PercentEncodeSegments(target));
  request.query = "offset=" + std::to_string(offset);
  if (truncate) request.query += "&truncate=true";
  request.headers.push_back({"Content-Type", "application/octet-stream"});
  request.body = std::move(bytes);
  const Result<HttpResponse> response = client_->Send(std::move(request), kPutTimeout);
  if (!response) return false;
  if (response->status / 100 == 2) return true;
  // The file's own fault; anything else may be over at the next round.
  hopeless = response->status == 400 || response->status == 403 || response->status == 413;
  if (hopeless) {
    spdlog::warn("the log file {} is not uploaded: the coordinator answered {}",
                 Printable(target, kShownLong), response->status);
  }
  return false;
}

}  // namespace parallelrun::agent
