// Pace: how long this node's mini-batches take, and what follows from it: how many a process is
// given at once, and how many the node holds. Pure; not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.h"

namespace parallelrun::agent {

class Pace {
 public:
  static constexpr uint32_t kMaxDepth = 256;    // mini-batches in one process's socket
  static constexpr uint32_t kMaxTarget = 2048;  // mini-batches held by a node
  static constexpr Duration kDepthWork = milliseconds(5);
  static constexpr Duration kTargetWork = milliseconds(200);
  // Above this, a wake-up costs less than 1 % of a mini-batch, so none is put behind another one:
  // a slow mini-batch never holds up one that an idle process could take.
  static constexpr Duration kSlow = milliseconds(20);

  // A mini-batch was answered `busy` after the process could begin with it. Answers that arrive
  // together are one long and many of zero: only their sum means something, so old samples fade
  // with time and never with their number.
  void Add(Duration busy, Instant now) {
    if (now - window_start_ >= kWindow) {
      sum_us_ /= 2;
      count_ /= 2;
      window_start_ = now;
    }
    sum_us_ += static_cast<double>(busy.count());
    count_ += 1;
  }

  // What takes longer than this must have nothing wait behind it.
  Duration Long() const {
    if (!known()) return Duration::max();
    const auto much = static_cast<int64_t>(kLongFactor * MeanMicros());
    return std::max(kLongLeast, Duration(much));
  }

  bool known() const { return count_ > 0; }
  // Of one mini-batch, in microseconds; 0 while unknown.
  double MeanMicros() const { return known() ? sum_us_ / count_ : 0; }

  // How many mini-batches a process may have unanswered.
  uint32_t Depth() const {
    if (!known() || MeanMicros() > static_cast<double>(kSlow.count())) return 1;
    return Fit(kDepthWork, 1, 2, kMaxDepth);
  }

  // How many unfinished mini-batches a node with this many ready processes should hold.
  uint32_t Target(uint32_t processes) const {
    const uint32_t least = std::min(2 * processes, kMaxTarget);
    if (!known() || processes == 0) return least;
    return Fit(kTargetWork, processes, least, kMaxTarget);
  }

 private:
  static constexpr Duration kWindow = milliseconds(100);
  static constexpr Duration kLongLeast = seconds(1);
  static constexpr double kLongFactor = 4;

  uint32_t Fit(Duration work, uint32_t processes, uint32_t least, uint32_t most) const {
    const double mean = std::max(MeanMicros(), 1.0);
    const double count = static_cast<double>(work.count()) * processes / mean;
    return count >= most ? most : std::max(least, static_cast<uint32_t>(count));
  }

  double sum_us_ = 0;
  double count_ = 0;
  Instant window_start_{};
};

}  // namespace parallelrun::agent
