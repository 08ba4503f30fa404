#include "job/rate.h"

namespace parallelrun::job {

void Rate::Observe(uint64_t done, Instant now) {
  if (samples_.size() >= 2 && now - samples_[samples_.size() - 2].time < kStep) {
    samples_.back() = {now, done};
  } else {
    samples_.push_back({now, done});
  }
  while (samples_.size() > 2 && now - samples_[1].time > kWindow) samples_.pop_front();
}

double Rate::PerSecond() const {
  if (samples_.size() < 2) return 0;
  const double elapsed = ToSeconds(samples_.back().time - samples_.front().time);
  if (elapsed <= 0) return 0;
  return static_cast<double>(samples_.back().done - samples_.front().done) / elapsed;
}

std::optional<Duration> Rate::Remaining(uint64_t left) const {
  if (left == 0) return Duration(0);
  const double rate = PerSecond();
  if (rate <= 0) return std::nullopt;
  return Duration(static_cast<int64_t>(static_cast<double>(left) / rate * 1e6));
}

}  // namespace parallelrun::job
