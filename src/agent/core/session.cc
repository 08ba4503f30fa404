#include "agent/core/session.h"

namespace parallelrun::agent {

bool Session::Begin(const Registration& registration) {
  const bool another = ever_ && registration.settings_digest != terms_.settings_digest;
  terms_ = registration;
  ever_ = true;
  wanted_ = false;
  return another;
}

// A tenth less than the lease: the clocks of two machines do not run at the same speed, and a
// process that is killed takes a moment to be gone. Two nodes in run() of one mini-batch would
// write the same side files at the same time, which a script without `speculation` need not stand.
Instant Session::OverBefore(Instant now) const {
  if (terms_.speculation) return Instant::min();
  return now - terms_.lease * 9 / 10;
}

}  // namespace parallelrun::agent
