// Rate of progress over the last half minute, and the time that is left. Pure; not thread-safe.
//
// Processes begin together, so that long mini-batches end in waves, one of each process in a wave:
// for minutes none, then all of them. What is done in half a minute says nothing then; the time
// that was left doubled and halved with each wave. So whole waves are measured, from the end of a
// mini-batch to the end of the one that is as many before it as there are processes, and the last
// mini-batch is expected whole waves after the one at its place in the newest wave.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "base/time.h"

namespace parallelrun::job {

class Rate {
 public:
  struct Seen {
    uint64_t done = 0;       // mini-batches; only grows
    uint64_t running = 0;    // mini-batches
    uint64_t processes = 0;  // of the nodes that are there
  };

  // About each second or oftener. What is before the first mini-batch that runs takes no time.
  void Observe(const Seen& seen, WorkInstant now);
  // Over the last half minute.
  double PerSecond() const;
  // Until all of `total` are done, as of the last observation. nullopt while it is not known:
  // before the first one is done, without a process, and where the last ones take longer than those
  // before them have.
  std::optional<Duration> Remaining(uint64_t total) const;

 private:
  // Work is time of processes, in microseconds: two processes do two seconds of it in each.
  struct Sample {
    WorkInstant time;
    double work;
    uint64_t done;
  };
  static constexpr Duration kWindow = seconds(30);
  static constexpr Duration kStep = milliseconds(250);
  static constexpr uint64_t kLeast = 32;  // mini-batches in the samples, once there are so many

  void Forget();
  // When the mini-batch of that number ended, as work.
  double EndOf(uint64_t number) const;
  // The work of one mini-batch, if the one of that number has ended at `work`.
  double Cost(uint64_t number, double work) const;
  // When the mini-batch of that number will end, so many waves after one that has.
  double EndAfter(uint64_t number, uint64_t waves, double cost) const;

  std::deque<Sample> samples_;  // one for each observation with something new, bounded
  WorkInstant now_;
  double work_ = 0;
  uint64_t processes_ = 0;
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
