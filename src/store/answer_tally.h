// Counts what the servers of a store answer, over all that ask it: one that lists and one that
// writes are two objects, and a person knows one store. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>

#include "store/store.h"

namespace parallelrun::store {

class AnswerTally {
 public:
  void Add(bool throttled) {
    ++all_;
    if (throttled) ++throttled_;
  }
  AnswerCounts Counts() const { return {all_.load(), throttled_.load()}; }

 private:
  std::atomic<uint64_t> all_{0};
  std::atomic<uint64_t> throttled_{0};
};

}  // namespace parallelrun::store
