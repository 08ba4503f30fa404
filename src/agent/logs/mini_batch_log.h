// sys/node/<node>/<process>.txt: what became of each mini-batch that a process worked on, a line
// each. Above kLinesPerSecond (of the node) the rest of a second is one line of sums for each
// process, so that short mini-batches are not slowed down by their own log.
//
// Not thread-safe. Lines wait in memory until Flush. A file that cannot be written is left out.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "agent/core/agent_types.h"
#include "base/time.h"

namespace parallelrun::agent {

class MiniBatchLog {
 public:
  static constexpr uint32_t kLinesPerSecond = 1000;

  // `folder` gets the files; it is made. `address` is the node's, for people.
  MiniBatchLog(std::string folder, std::string address);
  ~MiniBatchLog();
  MiniBatchLog(const MiniBatchLog&) = delete;
  MiniBatchLog& operator=(const MiniBatchLog&) = delete;

  void Open(uint32_t process, int pid);
  // Its file is closed by the Flush after next: what it did may still be told in between.
  void Close(uint32_t process);
  void Add(const std::vector<MiniBatchNote>& notes, WallTime now);
  // Writes; the files are kept within `limit` bytes on disk (log_trim.h).
  void Flush(WallTime now, uint64_t limit);
  // Flush, sums of the second under way included.
  void Finish(WallTime now, uint64_t limit);

 private:
  struct Sum {
    uint64_t mini_batches = 0;
    uint64_t failed = 0;
    uint64_t items = 0;
    uint64_t items_succeeded = 0;
    uint64_t cpu_ns = 0;
    uint64_t run_ns = 0;
  };
  struct Log {
    int fd = -1;
    int pid = 0;
    int flushes_left = -1;  // until it is closed; -1: not to be
    std::string lines;
    Sum sum;
  };
  void EndSecond(WallTime now);

  const std::string folder_;
  const std::string address_;
  std::map<uint32_t, Log> logs_;
  WallTime second_{};  // the start of the second that is counted
  uint32_t lines_ = 0;
};

// One line of it, with its line end.
std::string MiniBatchLine(const MiniBatchNote& note, const std::string& address, int pid,
                          WallTime now);

// The address of this machine as others see it; 127.0.0.1 if it has none.
std::string OwnAddress();

}  // namespace parallelrun::agent
