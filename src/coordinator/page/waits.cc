#include "coordinator/page/waits.h"

#include <algorithm>

namespace parallelrun::coordinator {

void Waits::Observe(const Look& look, Instant now) {
  if (looked_at_ && look_.any_ready && look_.works) {
    const double passed = ToSeconds(now - *looked_at_);
    const uint64_t idle = look_.processes - std::min(look_.leased, look_.processes);
    const double waited = look_.ready == 0 ? passed * static_cast<double>(idle) : 0;
    times_.all += passed * static_cast<double>(look_.processes);
    times_.stores += passed * static_cast<double>(look_.kept_by_stores);
    if (!look_.store.empty()) times_.store = look_.store;
    if (!look_.listed) times_.listing += waited;
    // Once nothing is leased, no process waits for the last mini-batch of another: all results have
    // come, and the disk has yet to take them. That time was counted here too, and where a disk was
    // slow the report advised smaller mini-batches, which do not help.
    if (look_.listed && look_.leased > 0) times_.last += waited;
  }
  times_.init = look.init;
  look_ = look;
  looked_at_ = now;
}

}  // namespace parallelrun::coordinator
