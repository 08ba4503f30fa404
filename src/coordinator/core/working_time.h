// The time that this coordinator was at work. One that was stopped, or whose host stood still,
// must not take that for its nodes' silence: what it lost is taken off here once, and no deadline
// needs to be moved. Only grows. Pure; not thread-safe.
#pragma once

#include "base/time.h"

namespace parallelrun::coordinator {

class WorkingTime {
 public:
  // Something comes each second or oftener. What comes later than this after what came before shows
  // that the coordinator was not running between the two.
  static constexpr Duration kFrozen = seconds(2);

  explicit WorkingTime(Instant now) : last_(now) {}

  // For all that comes, before anything is decided.
  void Pass(Instant now) {
    if (now - last_ > kFrozen) lost_ += now - last_;
    last_ = now;
  }
  WorkInstant At(Instant now) const { return WorkInstant(now.time_since_epoch() - lost_); }

 private:
  Instant last_;
  Duration lost_{0};
};

}  // namespace parallelrun::coordinator
