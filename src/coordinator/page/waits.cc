#include "coordinator/page/waits.h"

#include <algorithm>

namespace parallelrun::coordinator {

void Waits::Observe(const Look& look, Instant now) {
  if (looked_at_ && look_.any_ready && look_.works) {
    const double passed = ToSeconds(now - *looked_at_);
    const uint64_t idle = look_.processes - std::min(look_.leased, look_.processes);
    times_.all += passed * static_cast<double>(look_.processes);
    if (look_.ready == 0) {
      (look_.listed ? times_.last : times_.listing) += passed * static_cast<double>(idle);
    }
  }
  look_ = look;
  looked_at_ = now;
}

}  // namespace parallelrun::coordinator
