// Shortage: want of space is nobody's failure. The node hands back what it has not begun, and
// waits; no attempt and no start of a process counts meanwhile. Pure; not thread-safe.
#pragma once

#include <string>
#include <vector>

#include "agent/core/agent_types.h"
#include "agent/core/told.h"
#include "base/time.h"

namespace parallelrun::agent {

class Shortage {
 public:
  // Why there is no room where the node writes, as measured; "" when there is. True: it is news.
  bool Measured(const std::string& why);
  // A process had no space for something: by what is measured there may be room, but what a script
  // needs at once, or on another volume, only trying tells. Later each time, until one succeeds.
  // True: it is news.
  bool RanOut(std::string message, Instant now);
  // A mini-batch succeeded. True if it is news that there was enough space for it.
  bool Worked();

  // By what was measured; while there is none no failure counts.
  bool measured() const { return !no_room_.empty(); }
  // Something may be begun.
  bool Room(Instant now) const { return no_room_.empty() && now >= wait_until_; }
  // True once when there is room again.
  bool RoomAgain(Instant now);
  // When the wait for another try is over; kNever if it is.
  Instant WakeAt(Instant now) const { return now < wait_until_ ? wait_until_ : kNever; }

  // For a coordinator that has not heard it.
  std::vector<Event> All() const;

 private:
  std::string no_room_;
  std::string ran_out_;  // what a process had no space for, since the last result
  Instant wait_until_{};
  Duration wait_{0};
  bool had_room_ = true;
};

}  // namespace parallelrun::agent
