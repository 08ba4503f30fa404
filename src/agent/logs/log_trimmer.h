// LogTrimmer keeps what processes write into their logs within a limit (log_trim.h), four times a
// second, on a thread of its own: to drop a gigabyte is work for a disk, which may be slow or hang,
// and the loop has leases to renew.
//
// Thread-safety: made and destroyed on one thread; the rest on any.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/fd.h"
#include "base/thread.h"
#include "base/time.h"

namespace parallelrun::agent {

class LogTrimmer {
 public:
  explicit LogTrimmer(Duration interval = milliseconds(250));
  // Looks at them once more. Where the disk hangs, the thread is left after kEndLimit with what it
  // uses (Thread::JoinOrLeave).
  ~LogTrimmer();
  LogTrimmer(const LogTrimmer&) = delete;
  LogTrimmer& operator=(const LogTrimmer&) = delete;

  // Bytes of each file on disk; 1 GiB if not set.
  void SetLimit(uint64_t bytes);
  // Files of a process, open for writing.
  void Add(uint32_t process, std::vector<Fd> logs);
  void Forget(uint32_t process);

  static constexpr Duration kEndLimit = seconds(1);

 private:
  class Rounds;  // what the thread does and has
  const std::shared_ptr<Rounds> rounds_;
  Thread thread_;
};

}  // namespace parallelrun::agent
