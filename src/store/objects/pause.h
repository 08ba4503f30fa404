// A wait that a stop ends.
#pragma once

#include <stop_token>

#include "base/time.h"

namespace parallelrun::store {

// True when the time is over, false as soon as there is a stop.
bool Pause(Duration time, const std::stop_token& stop);

}  // namespace parallelrun::store
