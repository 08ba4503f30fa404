#include "coordinator/core/newest.h"

#include <algorithm>

namespace parallelrun::coordinator {
namespace {

constexpr Duration kGoneLimit = seconds(5);         // a volume may forget a name for a moment
constexpr Duration kLookAgain = milliseconds(200);  // after one that failed
constexpr Duration kLate = seconds(2);              // longer than a volume that is only slow takes

}  // namespace

bool Newest::Wants(Instant now) const {
  if (superseded_ || looking_) return false;
  if (failed_at_ && now - *failed_at_ < kLookAgain) return false;
  // In good time, so that nobody has to wait for one.
  return asked_ || failed_at_ || now - looked_at_ >= look_ / 2;
}

void Newest::Named(uint32_t epoch, Instant now) {
  asked_ = true;
  if (epoch <= disproved_) return;
  named_ = std::max(named_, epoch);
  counts_from_ = now;
  looked_ = false;
}

void Newest::OnLooked(Instant begun, const Status& seen, Instant now) {
  looking_ = false;
  asked_ = false;
  failed_at_.reset();
  if (!seen.ok()) {
    failed_at_ = now;
  } else if (counts_from_ && begun < *counts_from_) {
    asked_ = true;
  } else {
    looked_ = true;
    looked_at_ = begun;
    disproved_ = named_;
    counts_from_.reset();
  }
  const bool gone = !seen.ok() && seen.error().code == Code::kNotFound;
  superseded_ = superseded_ || (!seen.ok() && seen.error().code == Code::kStale);
  if (!gone) gone_since_.reset();
  if (gone && !gone_since_) gone_since_ = begun;
  if (gone && begun - *gone_since_ >= kGoneLimit) lost_ = seen.error().message;
  unseen_ = seen.ok() || superseded_ || gone ? "" : seen.error().message;
}

bool Newest::MayAnswer(Instant arrived, Instant now) const {
  return Fresh(now) || (looked_ && !superseded_ && arrived <= looked_at_);
}

bool Newest::Fresh(Instant now) const {
  return !superseded_ && looked_ && now - looked_at_ < look_;
}

bool Newest::Hangs(Instant now) const { return now - looked_at_ >= look_ + kLate; }

}  // namespace parallelrun::coordinator
