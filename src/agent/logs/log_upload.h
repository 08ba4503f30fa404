// LogUploader sends what appears below a folder to the coordinator's log tree, while it grows.
// New bytes only, at their offset, at most 1 MiB a call; a file that was written anew is sent anew
// and takes the place of what was sent (log_version.h tells). Links are never followed. A file
// outside the layout of docs/coordinator-api.md goes to user/files/<node>/.
//
// Bounds: the processes' stdout and stderr and the node's own logs become two files in turn, x.txt
// and x.1.txt, of half the limit each: the older half is dropped when the newer one is full, and
// each half begins with a line that says at which byte. Of any other file the first 1 GiB counts.
//
// Thread-safety: made, finished and destroyed on one thread; works on a thread of its own. Errors,
// those of the disk included, are logged once per file and tried again each round, as long as a
// later try can help.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/files.h"
#include "base/http/client.h"
#include "base/thread.h"
#include "base/time.h"

namespace parallelrun::agent {

// Where a file belongs in the log tree, or nullopt when its path has too many or too long
// segments. `relative` is below the logs folder.
std::optional<std::string> LogTarget(const std::string& relative, uint32_t node);

// Whether the target is one that is kept in two halves, and the second half's name.
bool IsRotated(const std::string& target);
std::string SecondHalf(const std::string& target);

class LogUploader {
 public:
  // `folder` need not exist yet.
  LogUploader(std::shared_ptr<Files> files, std::string folder, uint32_t node,
              std::unique_ptr<HttpClient> client, Duration interval = seconds(1));
  // Without a last round. Where the disk hangs, the thread is left after kEndLimit
  // (Thread::JoinOrLeave) with what it uses.
  ~LogUploader();
  LogUploader(const LogUploader&) = delete;
  LogUploader& operator=(const LogUploader&) = delete;

  // Of files that are kept in two halves; 1 GiB if not set. Any thread.
  void SetLimit(uint64_t bytes);

  // Uploads what is there by now, then stops; gives up after `limit`. True when all is uploaded.
  bool Finish(Duration limit);

  static constexpr Duration kEndLimit = seconds(1);

 private:
  class Rounds;  // what the thread does and has
  const std::shared_ptr<Rounds> rounds_;
  Thread thread_;
};

}  // namespace parallelrun::agent
