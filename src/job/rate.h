// Rate of progress over the last half minute, and the time that is left. Pure; not thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "base/time.h"

namespace parallelrun::job {

class Rate {
 public:
  // `done` only grows. Called about each second or oftener.
  void Observe(uint64_t done, Instant now);
  double PerSecond() const;
  // nullopt while the rate is unknown.
  std::optional<Duration> Remaining(uint64_t left) const;

 private:
  struct Sample {
    Instant time;
    uint64_t done;
  };
  static constexpr Duration kWindow = seconds(30);
  static constexpr Duration kStep = milliseconds(250);
  std::deque<Sample> samples_;  // at most kWindow / kStep, and the newest
};

// How many mini-batches one request may be granted: big leases first, single ones at the tail, so
// that no node sits on work that an idle process elsewhere could do (guided self-scheduling).
// `pending`: mini-batches not leased; `processes`: of the node, `all_processes`: of all nodes.
inline uint64_t GrantLimit(uint64_t want, uint64_t pending, uint64_t processes,
                           uint64_t all_processes) {
  if (want == 0 || pending == 0) return 0;
  const uint64_t share = pending * processes / (2 * (all_processes == 0 ? 1 : all_processes));
  const uint64_t limit = share == 0 ? 1 : share;
  return want < limit ? want : limit;
}

}  // namespace parallelrun::job
