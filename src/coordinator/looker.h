// Looks for a newer epoch, when it is asked to, in a thread of its own: the volume of the state may
// hang, and the decisions must not.
#pragma once

#include <functional>

#include "base/errands.h"
#include "base/error.h"
#include "base/time.h"

namespace parallelrun::coordinator {

class Looker {
 public:
  // `look` looks, and `looked` gets what it saw and when it began; both in the thread.
  Looker(const Clock& clock, std::function<Status()> look,
         std::function<void(Instant begun, const Status&)> looked);

  // Begins a look from now on. One that goes on already may have begun before: another one follows.
  void Ask();
  // No more begins. False: one goes on for longer than `limit`. Where it does, so does the end of
  // this.
  bool Finish(Duration limit) { return thread_.Finish(limit); }

 private:
  const Clock& clock_;
  const std::function<Status()> look_;
  const std::function<void(Instant, const Status&)> looked_;
  Errands thread_{"look for newer", 1, Errands::AtEnd::kForgets};
};

}  // namespace parallelrun::coordinator
