// MiniBatchWriter writes a MiniBatchLog on a thread of its own, four times a second. A disk that is
// slow or hangs holds up that thread, and not the loop, which has leases to renew.
//
// Thread-safety: made, finished and destroyed on one thread; log() and SetLimit on any.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "agent/logs/mini_batch_log.h"
#include "base/files.h"
#include "base/thread.h"
#include "base/time.h"

namespace parallelrun::agent {

class MiniBatchWriter {
 public:
  struct Options {
    std::string folder;
    std::string address;  // of the node, for people
    Duration interval = milliseconds(250);
    Duration end_limit = seconds(5);
  };
  MiniBatchWriter(std::shared_ptr<Files> files, Options options);
  ~MiniBatchWriter();  // Finish
  MiniBatchWriter(const MiniBatchWriter&) = delete;
  MiniBatchWriter& operator=(const MiniBatchWriter&) = delete;

  // What is to be written: Open, Close, Add.
  MiniBatchLog& log();
  // Bytes of each file on disk; 1 GiB if not set.
  void SetLimit(uint64_t bytes);
  // Writes what there is, sums of the second under way included. Where the disk hangs, the thread
  // is left after `end_limit` with what it uses (Thread::JoinOrLeave).
  void Finish();

 private:
  class Rounds;  // what the thread does and has
  const Duration end_limit_;
  const std::shared_ptr<Rounds> rounds_;
  Thread thread_;
};

}  // namespace parallelrun::agent
