// A wait that a stop ends: for a thread that does something every so often, or tries again, until
// it is asked to end (std::stop_source::request_stop).
#pragma once

#include <stop_token>

#include "base/time.h"

namespace parallelrun {

// True when the time is over, false as soon as there is a stop.
bool Pause(Duration time, const std::stop_token& stop);

}  // namespace parallelrun
