// A thread that does what it is asked to, one after the other: what waits for a disk that may hang,
// so that who asks does not. Thread-safe.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>

#include "base/thread.h"
#include "base/time.h"

namespace parallelrun {

class Errands {
 public:
  enum class AtEnd { kDoes, kForgets };  // what waits then
  // The name as Thread has it. At most `most` may wait.
  Errands(const char* name, size_t most, AtEnd at_end);
  // Waits for what goes on: ask Finish first.
  ~Errands() { Join(); }
  Errands(const Errands&) = delete;
  Errands& operator=(const Errands&) = delete;

  // False: too many wait, or it ends.
  bool Ask(std::function<void()> errand);
  // Takes no more. False: it needs longer than `limit`.
  bool Finish(Duration limit);
  // The same, however long.
  void Join();

 private:
  void End();
  void Run();

  const size_t most_;
  const AtEnd at_end_;
  std::mutex mutex_;  // guards the two below
  std::condition_variable wake_;
  std::deque<std::function<void()>> waiting_;
  bool ends_ = false;
  Thread thread_;
};

}  // namespace parallelrun
