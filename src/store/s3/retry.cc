#include "store/s3/retry.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace parallelrun::s3 {
namespace {

template <size_t N>
bool IsOneOf(std::string_view code, const std::array<std::string_view, N>& codes) {
  return std::find(codes.begin(), codes.end(), code) != codes.end();
}

constexpr std::array<std::string_view, 7> kThrottling{
    "SlowDown",        "Throttling",       "ThrottlingException",   "RequestLimitExceeded",
    "TooManyRequests", "RequestThrottled", "BandwidthLimitExceeded"};
constexpr std::array<std::string_view, 3> kExpiry{"ExpiredToken", "ExpiredTokenException",
                                                  "TokenRefreshRequired"};
constexpr std::array<std::string_view, 2> kFaults{"InternalError", "RequestTimeout"};

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

Outcome OutcomeOf(int status, std::string_view code, bool knows_region) {
  if (status / 100 == 2 && code.empty()) return Outcome::kDone;
  if (IsOneOf(code, kThrottling)) return Outcome::kThrottled;
  if (IsOneOf(code, kFaults)) return Outcome::kServerFault;
  if (code == "RequestTimeTooSkewed") return Outcome::kClockSkew;
  if (IsOneOf(code, kExpiry)) return Outcome::kExpired;
  switch (status) {
    case 429:
    case 503: return Outcome::kThrottled;
    case 408:
    case 500:
    case 502:
    case 504: return Outcome::kServerFault;
    case 301:
    case 307:
    case 400: return knows_region ? Outcome::kWrongRegion : Outcome::kFinal;
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

}  // namespace parallelrun::s3
