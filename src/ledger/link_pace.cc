#include "ledger/link_pace.h"

#include <algorithm>

namespace parallelrun::ledger {

LinkPace::LinkPace(const Limits& limits, uint64_t made)
    : limits_(limits), left_(std::max(0.0, limits.allowance - static_cast<double>(made))) {}

void LinkPace::Grow(Instant now) {
  const double grown = ToSeconds(now - grown_at_.value_or(now)) * limits_.per_second;
  // One at least, or a job without an allowance would never make any.
  left_ = std::min(left_ + std::max(0.0, grown), std::max(1.0, limits_.allowance));
  grown_at_ = std::max(grown_at_.value_or(now), now);
}

Duration LinkPace::WaitFor(Instant now, size_t bytes, bool urgent) {
  if (urgent || bytes >= limits_.large) return Duration{0};
  Grow(now);
  if (left_ >= 1) return Duration{0};
  // Rounded up: who comes then does not wait for a nanosecond more.
  const auto wait = std::chrono::duration<double>((1 - left_) / limits_.per_second);
  return std::chrono::ceil<Duration>(wait) + Duration{1};
}

void LinkPace::Count(Instant now) {
  Grow(now);
  left_ = std::max(0.0, left_ - 1);
}

}  // namespace parallelrun::ledger
