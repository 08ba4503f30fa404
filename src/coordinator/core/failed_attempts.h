// The newest failed attempts of mini-batches of this epoch, for people who watch the job: numbered
// from 1 on, so that who asks again hears what is new. Told before they are durable: a new epoch
// may tell some again. Bounded by kKept. Pure; not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>

#include "job/ids.h"

namespace parallelrun::coordinator {

struct FailedAttempt {
  job::BatchId id = 0;
  uint32_t attempt = 0;  // from 1 on
  bool final = false;    // it is neither tried again nor split
  uint32_t node = 0;
  uint32_t process = 0;
  std::string kind;
  std::string message;
  std::string log;  // below the log folder; may be empty
};

class FailedAttempts {
 public:
  static constexpr size_t kKept = 1000;

  void Add(FailedAttempt failed) {
    kept_.push_back(std::move(failed));
    ++last_;
    if (kept_.size() > kKept) kept_.pop_front();
  }
  uint64_t last() const { return last_; }                      // 0: there was none
  uint64_t first() const { return last_ - kept_.size() + 1; }  // of those that are kept
  // `number` from first() to last().
  const FailedAttempt& Of(uint64_t number) const { return kept_[number - first()]; }

 private:
  std::deque<FailedAttempt> kept_;
  uint64_t last_ = 0;
};

}  // namespace parallelrun::coordinator
