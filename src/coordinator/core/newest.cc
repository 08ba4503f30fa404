#include "coordinator/core/newest.h"

namespace parallelrun {
namespace {

constexpr Duration kGoneLimit = seconds(5);  // a volume may forget a name for a moment

}  // namespace

void Newest::OnLooked(Instant begun, const Status& seen) {
  if (seen.ok()) looked_at_ = begun;
  const bool gone = !seen.ok() && seen.error().code == Code::kNotFound;
  superseded_ = superseded_ || (!seen.ok() && seen.error().code == Code::kStale);
  if (!gone) gone_since_.reset();
  if (gone && !gone_since_) gone_since_ = begun;
  if (gone && begun - *gone_since_ >= kGoneLimit) lost_ = seen.error().message;
  unseen_ = seen.ok() || superseded_ || gone ? "" : seen.error().message;
}

bool Newest::Fresh(Instant now) const {
  return !superseded_ && looked_at_ && now - *looked_at_ < look_;
}

}  // namespace parallelrun
