// How long credentials serve that end. Pure.
#pragma once

#include <optional>

#include "base/time.h"

namespace parallelrun::store {

// Since credentials came. From the first time on new ones are asked for, and the old ones serve
// while there are none; after the second the old ones serve no more.
struct Validity {
  Duration renew;
  Duration end;
};
// `life`: from now to their end; nothing: they do not end.
std::optional<Validity> ValidityOf(std::optional<Duration> life);

}  // namespace parallelrun::store
