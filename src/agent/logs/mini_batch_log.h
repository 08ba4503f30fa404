// sys/node/<node>/<process>.txt: what became of each mini-batch that a process worked on, a line
// each. Above kLinesPerSecond (of the node) the rest of a second is one line of sums for each
// process, so that short mini-batches are not slowed down by their own log.
//
// Lines wait in memory until Flush, and longer where they cannot be written: the node's log tells
// why, once. What comes beyond kMostWaiting then is lost, and counted in its place.
//
// Thread-safety: Open, Close and Add on any thread, and they wait for no disk; Flush and Finish do,
// on one thread at a time (mini_batch_writer.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "agent/core/agent_types.h"
#include "base/files.h"
#include "base/time.h"

namespace parallelrun::agent {

class MiniBatchLog {
 public:
  static constexpr uint32_t kLinesPerSecond = 1000;
  static constexpr size_t kMostWaiting = size_t{4} << 20;  // bytes, of the node

  // `folder` gets the files; both are made once there are lines. `address` is the node's, for
  // people. `files` must outlive this.
  MiniBatchLog(const Files& files, std::string folder, std::string address);

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
    int pid = 0;
    int flushes_left = -1;  // until it is closed; -1: not to be
    std::string lines;
    uint64_t lost = 0;  // lines that there was no room for in memory
    Sum sum;
    // Of who flushes, without the mutex:
    std::unique_ptr<File> file;  // none: not yet, or it could not be made
    uint64_t size = 0;           // of what was written whole
    bool failing = false;        // that was told
  };
  // With the mutex; WriteLines gives it back while it waits for the disk.
  void EndSecond(WallTime now);
  void AddLine(Log& log, const std::string& line);
  void WriteLines(std::unique_lock<std::mutex>& lock, uint32_t process, Log& log, WallTime now,
                  uint64_t limit);

  // Without it.
  std::string PathOf(uint32_t process) const;
  Status OpenFile(uint32_t process, Log& log) const;
  Status Write(uint32_t process, Log& log, const std::string& lines) const;
  static void Tell(uint32_t process, Log& log, const Status& written);
  void Trim(uint32_t process, Log& log, uint64_t limit) const;

  const Files& files_;
  const std::string folder_;
  const std::string address_;

  std::mutex mutex_;              // guards what follows
  std::map<uint32_t, Log> logs_;  // only who flushes removes one
  size_t waiting_ = 0;            // bytes of the lines of all, of those too that are being written
  WallTime second_{};             // the start of the second that is counted
  uint32_t lines_ = 0;
};

// One line of it, with its line end.
std::string MiniBatchLine(const MiniBatchNote& note, const std::string& address, int pid,
                          WallTime now);

// The address of this machine as others see it; 127.0.0.1 if it has none.
std::string OwnAddress();

}  // namespace parallelrun::agent
