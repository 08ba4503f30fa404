#include "agent/log_upload.h"

#include <dirent.h>
#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <vector>

#include "base/escape.h"
#include "base/http_target.h"

namespace parallelrun {
namespace {

constexpr size_t kMaxPut = size_t{1} << 20;
constexpr uint64_t kMaxFile = uint64_t{1} << 30;
constexpr size_t kMaxSegments = 8;
constexpr size_t kMaxSegment = 255;
constexpr Duration kPutTimeout = seconds(30);
constexpr size_t kMaxShown = 500;

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

LogUploader::LogUploader(std::string folder, uint32_t node, std::unique_ptr<HttpClient> client,
                         Duration interval)
    : folder_(std::move(folder)),
      node_(node),
      client_(std::move(client)),
      interval_(interval),
      thread_([this] { Run(); }) {}

LogUploader::~LogUploader() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  client_->Cancel();
  thread_.join();
}

bool LogUploader::Finish(Duration limit) {
  std::unique_lock lock(mutex_);
  last_round_ = true;
  changed_.notify_all();
  return changed_.wait_for(lock, limit, [this] { return complete_; });
}

void LogUploader::Run() {
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

bool LogUploader::Round() {
  const int fd = open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return errno == ENOENT;
  return ScanFolder(fd, "", 0);
}

// Owns `folder_fd`. False when something is left that a later round may upload.
bool LogUploader::ScanFolder(int folder_fd, const std::string& relative, int depth) {
  DIR* folder = fdopendir(folder_fd);
  if (folder == nullptr) return close(folder_fd), false;
  bool complete = true;
  while (const dirent* entry = readdir(folder)) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    const std::string path = relative.empty() ? name : relative + "/" + name;
    if (skipped_.contains(path)) continue;
    struct stat info {};
    if (fstatat(dirfd(folder), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (!S_ISDIR(info.st_mode) && !S_ISREG(info.st_mode)) continue;
    const auto known = sent_.find(path);
    if (S_ISREG(info.st_mode) &&
        (info.st_size == 0 ||
         (known != sent_.end() && known->second == static_cast<uint64_t>(info.st_size)))) {
      continue;
    }
    // The kind was looked at by name: O_NOFOLLOW and O_NONBLOCK keep a swapped entry harmless.
    const int fd =
        openat(dirfd(folder), entry->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) continue;
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

bool LogUploader::UploadFile(int fd, const std::string& relative) {
  const std::optional<std::string> target = LogTarget(relative, node_);
  if (!target) {
    skipped_.insert(relative);
    spdlog::warn("the log file {} is not uploaded: its path has too many or too long segments",
                 Printable(relative, kMaxShown));
    return true;
  }
  uint64_t& sent = sent_[relative];
  struct stat info {};
  fstat(fd, &info);
  if (static_cast<uint64_t>(info.st_size) < sent) sent = 0;  // begun again
  for (;;) {
    std::string bytes(kMaxPut, '\0');
    const ssize_t n = pread(fd, bytes.data(), bytes.size(), static_cast<off_t>(sent));
    if (n < 0) return false;
    if (n == 0) return true;
    if (sent >= kMaxFile) {
      skipped_.insert(relative);
      spdlog::warn("the log file {} is above 1 GiB: the rest is not uploaded",
                   Printable(relative, kMaxShown));
      return true;
    }
    bytes.resize(static_cast<size_t>(n));
    bool hopeless = false;
    if (!Put(*target, sent, std::move(bytes), hopeless)) {
      if (hopeless) skipped_.insert(relative);
      return hopeless;
    }
    sent += static_cast<uint64_t>(n);
    {
      const std::lock_guard lock(mutex_);
      if (stop_) return false;
    }
  }
}

bool LogUploader::Put(const std::string& target, uint64_t offset, std::string bytes,
                      bool& hopeless) {
  HttpRequest request;
  request.method = "PUT";
  request.path = "/v1/nodes/" + std::to_string(node_) + "/logs";
  for (const std::string& segment : Split(target))
    request.path.append("/").append(PercentEncode(segment));
  request.query = "offset=" + std::to_string(offset);
  request.headers.push_back({"Content-Type", "application/octet-stream"});
  request.body = std::move(bytes);
  const Result<HttpResponse> response = client_->Send(std::move(request), kPutTimeout);
  if (!response) return false;
  if (response->status / 100 == 2) return true;
  // The file's own fault; anything else may be over at the next round.
  hopeless = response->status == 400 || response->status == 403 || response->status == 413;
  if (hopeless) {
    spdlog::warn("the log file {} is not uploaded: the coordinator answered {}",
                 Printable(target, kMaxShown), response->status);
  }
  return false;
}

}  // namespace parallelrun
