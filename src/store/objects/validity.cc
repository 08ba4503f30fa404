#include "store/objects/validity.h"

#include <algorithm>

namespace parallelrun::store {
namespace {

constexpr Duration kEarly = seconds(5 * 60);  // before their end
constexpr Duration kAtLeast = seconds(60);    // for credentials that have ended by our clock

}  // namespace

std::optional<Validity> ValidityOf(std::optional<Duration> life) {
  if (!life) return std::nullopt;
  // Ended when they came: our clock may be wrong, and the server knows better.
  if (*life <= Duration{0}) return Validity{kAtLeast, kAtLeast};
  return Validity{std::max(*life - kEarly, *life / 2), *life};
}

}  // namespace parallelrun::store
