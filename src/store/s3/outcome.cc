#include "store/s3/outcome.h"

#include <algorithm>
#include <array>

namespace parallelrun::store::s3 {
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

}  // namespace

Outcome OutcomeOf(int status, std::string_view code, bool knows_region) {
  if (IsOneOf(code, kThrottling)) return Outcome::kThrottled;
  if (IsOneOf(code, kFaults)) return Outcome::kServerFault;
  if (code == "RequestTimeTooSkewed") return Outcome::kClockSkew;
  if (IsOneOf(code, kExpiry)) return Outcome::kExpired;
  const Outcome outcome = OutcomeOfStatus(status);
  if (outcome == Outcome::kDone && !code.empty()) return Outcome::kFinal;
  const bool may_be_elsewhere = status == 301 || status == 307 || status == 400;
  return may_be_elsewhere && knows_region ? Outcome::kWrongRegion : outcome;
}

}  // namespace parallelrun::store::s3
