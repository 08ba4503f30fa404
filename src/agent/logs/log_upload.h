// LogUploader sends what appears below a folder to the coordinator's log tree, while it grows.
// New bytes only, at their offset, at most 1 MiB a call; a file that was written anew is sent anew
// and takes the place of what was sent (log_version.h tells). Links are never followed. A file
// outside the layout of docs/coordinator-api.md goes to user/files/<node>/.
//
// Bounds: the processes' stdout and stderr and the node's own logs become two files in turn, x.txt
// and x.1.txt, of half the limit each: the older half is dropped when the newer one is full, and
// each half begins with a line that says at which byte. Of any other file the first 1 GiB counts.
//
// Thread-safety: made, finished and destroyed on one thread; works on a thread of its own. Errors
// are logged once per file and tried again each round, as long as a later try can help.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "agent/logs/log_version.h"
#include "base/http/client.h"
#include "base/thread.h"
#include "base/time.h"

namespace parallelrun {

// Where a file belongs in the log tree, or nullopt when its path has too many or too long
// segments. `relative` is below the logs folder.
std::optional<std::string> LogTarget(const std::string& relative, uint32_t node);

// Whether the target is one that is kept in two halves, and the second half's name.
bool IsRotated(const std::string& target);
std::string SecondHalf(const std::string& target);

class LogUploader {
 public:
  // `folder` need not exist yet.
  LogUploader(std::string folder, uint32_t node, std::unique_ptr<HttpClient> client,
              Duration interval = seconds(1));
  ~LogUploader();  // without a last round
  LogUploader(const LogUploader&) = delete;
  LogUploader& operator=(const LogUploader&) = delete;

  // Of files that are kept in two halves; 1 GiB if not set. Any thread.
  void SetLimit(uint64_t bytes) { limit_ = bytes; }

  // Uploads what is there by now, then stops; gives up after `limit`. True when all is uploaded.
  bool Finish(Duration limit);

 private:
  void Run();
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
  Thread thread_;
};

}  // namespace parallelrun
