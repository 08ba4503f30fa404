#include "store/objects/retry.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace parallelrun::store {
namespace {

// Doubled as often as there were requests, but never above the longest: no shift can overflow.
Duration Bound(const RetryLimits& limits, int repeated) {
  Duration bound = limits.shortest;
  for (int i = 0; i < repeated && bound < limits.longest; ++i) bound *= 2;
  return std::min(bound, limits.longest);
}

// What was mended once and did not help is not mended again.
std::optional<Duration> AtOnce(bool& mended) {
  if (std::exchange(mended, true)) return std::nullopt;
  return Duration{0};
}

}  // namespace

Outcome OutcomeOfStatus(int status) {
  if (status / 100 == 2) return Outcome::kDone;
  switch (status) {
    case 429:
    case 503: return Outcome::kThrottled;
    case 408:
    case 500:
    case 502:
    case 504: return Outcome::kServerFault;
    default: return Outcome::kFinal;
  }
}

std::optional<Duration> NextWait(Outcome outcome, Attempts& attempts, const RetryLimits& limits,
                                 std::optional<Duration> retry_after, uint64_t random) {
  switch (outcome) {
    case Outcome::kDone:
    case Outcome::kFinal: return std::nullopt;
    case Outcome::kClockSkew: return AtOnce(attempts.mended_clock);
    case Outcome::kExpired: return AtOnce(attempts.mended_credentials);
    case Outcome::kWrongRegion: return AtOnce(attempts.mended_region);
    case Outcome::kThrottled:
    case Outcome::kServerFault:
    case Outcome::kBroken: break;
  }
  const Duration bound = Bound(limits, attempts.repeated);
  // A whole number of microseconds in [0, bound].
  Duration wait(static_cast<int64_t>(random % static_cast<uint64_t>(bound.count() + 1)));
  if (retry_after) wait = std::max(wait, std::min(*retry_after, limits.longest));
  if (attempts.repeated >= limits.most || attempts.since_first + wait > limits.in_all) {
    return std::nullopt;
  }
  ++attempts.repeated;
  return wait;
}

std::optional<Duration> ParseRetryAfter(std::string_view value) {
  uint32_t count = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), count);
  if (error != std::errc() || end != value.data() + value.size()) return std::nullopt;
  return seconds(count);
}

}  // namespace parallelrun::store
