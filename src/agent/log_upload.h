// LogUploader sends what appears below a folder to the coordinator's log tree, while it grows.
// New bytes only, at their offset, at most 1 MiB a call; links are never followed; a file counts
// up to 1 GiB. A file outside the layout of docs/coordinator-api.md goes to user/files/<node>/.
//
// Thread-safety: made, finished and destroyed on one thread; works on a thread of its own. Errors
// are logged once per file and tried again each round, as long as a later try can help.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "base/http_client.h"
#include "base/time.h"

namespace parallelrun {

// Where a file belongs in the log tree, or nullopt when its path has too many or too long
// segments. `relative` is below the logs folder.
std::optional<std::string> LogTarget(const std::string& relative, uint32_t node);

class LogUploader {
 public:
  // `folder` need not exist yet.
  LogUploader(std::string folder, uint32_t node, std::unique_ptr<HttpClient> client,
              Duration interval = seconds(1));
  ~LogUploader();  // without a last round
  LogUploader(const LogUploader&) = delete;
  LogUploader& operator=(const LogUploader&) = delete;

  // Uploads what is there by now, then stops; gives up after `limit`. True when all is uploaded.
  bool Finish(Duration limit);

 private:
  void Run();
  bool Round();
  bool ScanFolder(int folder_fd, const std::string& relative, int depth);
  bool UploadFile(int fd, const std::string& relative);
  bool Put(const std::string& target, uint64_t offset, std::string bytes, bool& hopeless);

  const std::string folder_;
  const uint32_t node_;
  const std::unique_ptr<HttpClient> client_;
  const Duration interval_;
  std::map<std::string, uint64_t> sent_;  // bytes, by relative path; only on the thread
  std::set<std::string> skipped_;         // cannot be uploaded; only on the thread

  std::mutex mutex_;
  std::condition_variable changed_;
  bool last_round_ = false;
  bool stop_ = false;
  bool complete_ = false;
  std::thread thread_;
};

}  // namespace parallelrun
