// Looks for a newer epoch, when it is asked to, in a thread of its own: the volume of the state may
// hang, and the decisions must not.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>

#include "base/error.h"
#include "base/thread.h"
#include "base/time.h"

namespace parallelrun::coordinator {

class Looker {
 public:
  // `look` looks, and `looked` gets what it saw and when it began; both in the thread.
  Looker(const Clock& clock, std::function<Status()> look,
         std::function<void(Instant begun, const Status&)> looked);
  // Waits for a look that goes on: ask Finish first.
  ~Looker();
  Looker(const Looker&) = delete;
  Looker& operator=(const Looker&) = delete;

  // Begins a look from now on. One that goes on already may have begun before: another one follows.
  void Ask();
  // No more begins. False: one goes on for longer than `limit`.
  bool Finish(Duration limit);

 private:
  void End();
  void Run();

  const Clock& clock_;
  const std::function<Status()> look_;
  const std::function<void(Instant, const Status&)> looked_;
  std::mutex mutex_;  // guards the two flags
  std::condition_variable wake_;
  bool asked_ = false;
  bool ends_ = false;
  Thread thread_;
};

}  // namespace parallelrun::coordinator
