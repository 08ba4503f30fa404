#include "coordinator/page/waits.h"

#include <algorithm>

namespace parallelrun::coordinator {

void Waits::Observe(const Look& look, Instant now) {
  if (looked_at_ && look_.any_ready && look_.works) {
    const double passed = ToSeconds(now - *looked_at_);
    const uint64_t idle = look_.processes - std::min(look_.leased, look_.processes);
    const double waited = look_.ready == 0 ? passed * static_cast<double>(idle) : 0;
    times_.all += passed * static_cast<double>(look_.processes);
    if (!look_.listed) times_.listing += waited;
    // Behind the last result nobody waits for another process: a slow disk has yet to take it. What
    // that took was advised to be cured by smaller mini-batches.
    if (look_.listed && look_.leased > 0) times_.last += waited;
  }
  look_ = look;
  looked_at_ = now;
}

}  // namespace parallelrun::coordinator
