#include "agent/logs/log_upload.h"

#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "agent/logs/log_trim.h"
#include "agent/logs/log_version.h"
#include "base/escape.h"
#include "base/fd.h"
#include "base/http/target.h"
#include "base/open_below.h"

namespace parallelrun::agent {
namespace {

constexpr size_t kMaxPut = size_t{1} << 20;
constexpr uint64_t kMaxFile = uint64_t{1} << 30;
constexpr size_t kMaxSegments = 8;
constexpr size_t kMaxSegment = 255;
constexpr Duration kPutTimeout = seconds(30);

std::vector<std::string> Split(const std::string& path) {
  std::vector<std::string> segments;
  for (size_t start = 0; start <= path.size();) {
    const size_t end = std::min(path.find('/', start), path.size());
    segments.push_back(path.substr(start, end - start));
    start = end + 1;
  }
  return segments;
}

int OpenForHoles(const std::string& folder, const std::string& relative) {
  const Fd at(open(folder.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  return at.ok() ? OpenBelow(at.get(), relative, O_RDONLY, 0) : -1;
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
  Rounds(std::shared_ptr<Files> files, std::string folder, uint32_t node,
         std::unique_ptr<HttpClient> client, Duration interval)
      : files_(std::move(files)),
        folder_(std::move(folder)),
        node_(node),
        client_(std::move(client)),
        interval_(interval) {}

  void Run();
  // From other threads.
  void SetLimit(uint64_t bytes) { limit_ = bytes; }
  bool Finish(Duration limit);
  void Stop();

 private:
  // These say false when something is left that a later round may upload.
  bool Round();
  bool ScanFolder(const Folder& folder, const std::string& relative, int depth);
  bool ScanEntry(const Folder& folder, const std::string& name, EntryKind kind,
                 const std::string& path, int depth);
  bool Failed(const std::string& relative, const Error& error);
  // How far a file is uploaded.
  struct Sent {
    bool IsAllOf(const FileFacts& facts) const;

    uint64_t bytes = 0;    // of the local file
    bool rotated = false;  // kept in two halves: appended to, begun again at most
    uint64_t offset = 0;   // in the target's half
    bool second = false;   // half
    LogVersion version;    // of a file that is not rotated
    bool stale = false;    // the target holds what the file held before
  };
  static Status LookAt(const File& file, const FileFacts& facts, Sent& sent);
  bool UploadFile(const File& file, const FileFacts& facts, const std::string& relative);
  // What came of one file's bytes: those of a file that the coordinator does not want are given up.
  enum class Outcome : uint8_t { kDone, kLater, kHopeless };
  Result<Outcome> UploadRange(const File& file, const std::string& target, Sent& sent,
                              uint64_t end);
  Result<Outcome> UploadHalves(const File& file, const std::string& relative,
                               const std::string& target, Sent& sent, uint64_t end);
  Outcome Put(const std::string& target, uint64_t offset, bool truncate, std::string bytes);
  bool Stopping();

  const std::shared_ptr<Files> files_;
  const std::string folder_;
  const uint32_t node_;
  const std::unique_ptr<HttpClient> client_;
  const Duration interval_;
  std::atomic<uint64_t> limit_{uint64_t{1} << 30};
  std::map<std::string, Sent> sent_;  // by relative path; only on the thread
  std::set<std::string> skipped_;     // cannot be uploaded; only on the thread
  std::set<std::string> failed_;      // could not be read, and that was told; only on the thread

  std::mutex mutex_;
  std::condition_variable changed_;
  bool last_round_ = false;
  bool stop_ = false;
  bool complete_ = false;
};

LogUploader::LogUploader(std::shared_ptr<Files> files, std::string folder, uint32_t node,
                         std::unique_ptr<HttpClient> client, Duration interval)
    : rounds_(std::make_shared<Rounds>(std::move(files), std::move(folder), node, std::move(client),
                                       interval)),
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
  // From the folder that holds it: a link in its own place is not followed either.
  const Result<std::unique_ptr<Folder>> holds =
      files_->OpenFolder(FolderOf(folder_), Links::kRefuse);
  if (!holds.ok()) return Failed("", holds.error());
  const Result<std::unique_ptr<Folder>> folder =
      (*holds)->OpenFolder(folder_.substr(folder_.rfind('/') + 1));
  return folder.ok() ? ScanFolder(**folder, "", 0) : Failed("", folder.error());
}

// Whether a later round can do no better.
bool LogUploader::Rounds::Failed(const std::string& relative, const Error& error) {
  if (error.code == Code::kNotFound) return true;         // it has gone
  const bool hopeless = error.code == Code::kPermission;  // or it is a link by now
  if (failed_.insert(relative).second) {
    spdlog::warn("a log cannot be read{}: {}", hopeless ? "" : ", and is tried again",
                 error.message);
  }
  return hopeless;
}

bool LogUploader::Rounds::ScanFolder(const Folder& folder, const std::string& relative, int depth) {
  bool complete = true;
  const Status listed = folder.Entries([&](const std::string& name, EntryKind kind) {
    const std::string path = relative.empty() ? name : relative + "/" + name;
    if (!skipped_.contains(path)) complete = ScanEntry(folder, name, kind, path, depth) && complete;
    return Status();
  });
  return (listed.ok() || Failed(relative, listed.error())) && complete;
}

bool LogUploader::Rounds::ScanEntry(const Folder& folder, const std::string& name, EntryKind kind,
                                    const std::string& path, int depth) {
  if (kind == EntryKind::kFile || kind == EntryKind::kUnknown) {
    const Result<FileFacts> facts = folder.Stat(name, Links::kRefuse);
    if (!facts.ok()) return Failed(path, facts.error());
    kind = facts->kind;
    const auto known = sent_.find(path);
    if (kind == EntryKind::kFile &&
        (known == sent_.end() ? facts->size == 0 : known->second.IsAllOf(*facts))) {
      return true;
    }
  }
  if (kind == EntryKind::kFolder) {
    if (depth == static_cast<int>(kMaxSegments)) return true;
    const Result<std::unique_ptr<Folder>> below = folder.OpenFolder(name);
    return below.ok() ? ScanFolder(**below, path, depth + 1) : Failed(path, below.error());
  }
  if (kind != EntryKind::kFile) return true;
  const Result<std::unique_ptr<File>> file = folder.OpenRead(name);
  if (!file.ok()) return Failed(path, file.error());
  const Result<FileFacts> facts = (*file)->Stat();
  if (!facts.ok()) return Failed(path, facts.error());
  // It may be another by now.
  return facts->kind != EntryKind::kFile || UploadFile(**file, *facts, path);
}

bool LogUploader::Rounds::UploadFile(const File& file, const FileFacts& facts,
                                     const std::string& relative) {
  const std::optional<std::string> target = LogTarget(relative, node_);
  if (!target) {
    skipped_.insert(relative);
    spdlog::warn("the log file {} is not uploaded: its path has too many or too long segments",
                 Printable(relative, kShownLong));
    return true;
  }
  Sent& sent = sent_[relative];
  // What comes later is the next round's: one file that grows fast must not hold up the others.
  const uint64_t end = facts.size;
  const bool rotated = sent.rotated = IsRotated(*target);
  if (rotated) {
    if (end < sent.bytes) sent.bytes = 0;  // begun again
  } else if (const Status looked = LookAt(file, facts, sent); !looked.ok()) {
    return Failed(relative, looked.error());
  }
  const Result<Outcome> outcome = rotated
                                      ? UploadHalves(file, relative, *target, sent, end)
                                      : UploadRange(file, *target, sent, std::min(end, kMaxFile));
  if (!outcome.ok()) return Failed(relative, outcome.error());
  const bool full = *outcome == Outcome::kDone && !rotated && end > kMaxFile;
  if (full) {
    spdlog::warn("the log file {} is above 1 GiB: the rest is not uploaded",
                 Printable(relative, kShownLong));
  }
  if (full || *outcome == Outcome::kHopeless) skipped_.insert(relative);
  return *outcome != Outcome::kLater;
}

bool LogUploader::Rounds::Sent::IsAllOf(const FileFacts& facts) const {
  return bytes == facts.size && (rotated || version.Settled(facts));
}

// Begins again with a file that holds no longer what was sent.
Status LogUploader::Rounds::LookAt(const File& file, const FileFacts& facts, Sent& sent) {
  Result<LogVersion> version = LogVersion::Of(file, facts);
  if (!version.ok()) return version.error();
  if (sent.version.known()) {
    const Result<bool> continued = sent.version.ContinuedBy(file, facts);
    if (!continued.ok()) return continued.error();
    if (!*continued) {
      sent.bytes = 0;
      sent.stale = true;
    }
  }
  version->CountLooks(sent.version);
  sent.version = *version;
  return {};
}

bool LogUploader::Rounds::Stopping() {
  const std::lock_guard lock(mutex_);
  return stop_;
}

Result<LogUploader::Rounds::Outcome> LogUploader::Rounds::UploadRange(const File& file,
                                                                      const std::string& target,
                                                                      Sent& sent, uint64_t end) {
  while (sent.bytes < end || sent.stale) {
    std::string bytes(std::min<uint64_t>(kMaxPut, end - sent.bytes), '\0');
    const Result<size_t> n = file.ReadInto(sent.bytes, bytes);
    if (!n.ok()) return n.error();
    if (*n == 0 && !sent.stale) break;
    bytes.resize(*n);
    const Outcome put = Put(target, sent.bytes, sent.stale, std::move(bytes));
    if (put != Outcome::kDone) return put;
    sent.stale = false;
    sent.bytes += *n;
    if (Stopping()) return Outcome::kLater;
  }
  return Outcome::kDone;
}

Result<LogUploader::Rounds::Outcome> LogUploader::Rounds::UploadHalves(const File& file,
                                                                       const std::string& relative,
                                                                       const std::string& target,
                                                                       Sent& sent, uint64_t end) {
  const uint64_t half = std::max<uint64_t>(limit_ / 2, 1);
  // For its holes alone, of which `File` knows nothing.
  const Fd holes(sent.bytes < end ? OpenForHoles(folder_, relative) : -1);
  while (sent.bytes < end) {
    Sent next = sent;
    std::string bytes;
    next.bytes = KeptFrom(holes.get(), sent.bytes);
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
    const Result<size_t> n = file.ReadInto(next.bytes, std::span<char>(bytes).subspan(mark));
    if (!n.ok()) return n.error();
    if (*n == 0) break;
    if (KeptFrom(holes.get(), next.bytes) != next.bytes) continue;  // dropped while it was read
    bytes.resize(mark + *n);
    next.bytes += *n;
    const uint64_t offset = next.offset;
    next.offset += bytes.size();
    const Outcome put =
        Put(next.second ? SecondHalf(target) : target, offset, full, std::move(bytes));
    if (put != Outcome::kDone) return put;
    sent = next;
    if (Stopping()) return Outcome::kLater;
  }
  return Outcome::kDone;
}

LogUploader::Rounds::Outcome LogUploader::Rounds::Put(const std::string& target, uint64_t offset,
                                                      bool truncate, std::string bytes) {
  HttpRequest request;
  request.method = "PUT";
  request.path = fmt::format("/v1/nodes/{}/logs/{}", node_, PercentEncodeSegments(target));
  request.query = "offset=" + std::to_string(offset);
  if (truncate) request.query += "&truncate=true";
  request.headers.push_back({"Content-Type", "application/octet-stream"});
  request.body = std::move(bytes);
  const Result<HttpResponse> response = client_->Send(std::move(request), kPutTimeout);
  if (!response) return Outcome::kLater;
  if (response->status / 100 == 2) return Outcome::kDone;
  // The file's own fault; anything else may be over at the next round.
  const bool hopeless =
      response->status == 400 || response->status == 403 || response->status == 413;
  if (!hopeless) return Outcome::kLater;
  spdlog::warn("the log file {} is not uploaded: the coordinator answered {}",
               Printable(target, kShownLong), response->status);
  return Outcome::kHopeless;
}

}  // namespace parallelrun::agent
