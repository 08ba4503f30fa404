// A process's own clock: it shows any time, and runs faster or slower than the World's. Plain data.
#pragma once

#include <cstdint>

#include "base/time.h"

namespace parallelrun::simulation {

class OwnClock {
 public:
  static constexpr int64_t kTrue = 1'000'000;  // the rate of the World

  // It shows `shows` at the World's `start`; `rate` in parts of kTrue.
  OwnClock(Instant start, Instant shows, int64_t rate)
      : start_(start), shows_(shows), rate_(rate) {}

  Instant At(Instant world) const {
    return shows_ + Duration((world - start_).count() * rate_ / kTrue);
  }
  // In the World's time; not less.
  Duration Takes(Duration own) const { return Duration((own.count() * kTrue + rate_ - 1) / rate_); }

 private:
  Instant start_;
  Instant shows_;
  int64_t rate_;
};

}  // namespace parallelrun::simulation
