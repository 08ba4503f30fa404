// Standstill knows when something last moved, and says when nothing has for too long. Only time
// that could be used counts: none in which nobody could work, or in which the volume of the state
// took nothing. Times are working time. Pure; not thread-safe.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/time.h"
#include "job/job_state.h"

namespace parallelrun {

class Standstill {
 public:
  struct Limits {
    Duration progress;    // from one mini-batch to the next
    Duration first_task;  // to the first one that is planned
  };
  Standstill(const Limits& limits, Instant worked)
      : limits_(limits), started_(worked), moved_(worked), ticked_(worked) {}

  // A mini-batch was planned or finished, or a node died of one: what is lost again and again comes
  // to an end by that.
  void Moved(Instant worked) { moved_ = worked; }
  // Each second or oftener; `usable`: somebody could work since the last one.
  void Tick(Instant worked, bool usable);

  // The verdict when nothing has moved for too long. `why` says what is waited for, "": for the
  // script, as far as is known.
  std::optional<Verdict> Overdue(const JobState& state, Instant worked,
                                 const std::function<std::string()>& why) const;

 private:
  const Limits limits_;
  const Instant started_;
  Instant moved_;
  Instant ticked_;
};

}  // namespace parallelrun
