// Threads that end together, as those of one pool do.
#pragma once

#include <chrono>
#include <vector>

#include "base/thread.h"

namespace parallelrun {

// Joins those whose bodies end within `limit`, which is one for all of them, and leaves none in
// `threads`. False: some go on (Thread::JoinOrLeave). Ask them to stop before.
inline bool JoinOrLeaveAll(std::vector<Thread>& threads, std::chrono::nanoseconds limit) {
  const auto until = std::chrono::steady_clock::now() + limit;
  bool ended = true;
  for (Thread& thread : threads) {
    ended = thread.JoinOrLeave(until - std::chrono::steady_clock::now()) && ended;
  }
  threads.clear();
  return ended;
}

}  // namespace parallelrun
