#include "job/rate.h"

#include <algorithm>

namespace parallelrun::job {

void Rate::Observe(const Seen& seen, WorkInstant now) {
  if (samples_.empty()) {
    if (seen.running == 0) return;
    samples_.push_back({now, 0, seen.done});
  } else {
    work_ += static_cast<double>(processes_) * static_cast<double>((now - now_).count());
    const bool soon = samples_.size() >= 2 && now - samples_[samples_.size() - 2].time < kStep;
    if (seen.done > samples_.back().done) {
      if (soon) samples_.pop_back();
      samples_.push_back({now, work_, seen.done});
    }
  }
  now_ = now;
  processes_ = seen.processes;
  Forget();
}

void Rate::Forget() {
  const uint64_t needed = std::max(kLeast, 2 * processes_);
  while (samples_.size() > 2 && now_ - samples_[1].time > kWindow &&
         samples_.back().done - samples_[1].done >= needed) {
    samples_.pop_front();
  }
}

double Rate::PerSecond() const {
  if (samples_.empty()) return 0;
  const auto behind =
      std::upper_bound(samples_.begin(), samples_.end(), now_ - kWindow,
                       [](WorkInstant time, const Sample& sample) { return time < sample.time; });
  const Sample& from = behind == samples_.begin() ? *behind : *(behind - 1);
  const double elapsed = ToSeconds(std::min<Duration>(now_ - from.time, kWindow));
  if (elapsed <= 0) return 0;
  return static_cast<double>(samples_.back().done - from.done) / elapsed;
}

double Rate::EndOf(uint64_t number) const {
  const auto at =
      std::lower_bound(samples_.begin(), samples_.end(), number,
                       [](const Sample& sample, uint64_t done) { return sample.done < done; });
  if (at == samples_.begin()) return at->work;
  // Nodes tell of many short ones at once: only the newest of them have ended just now.
  if (at->done - number < processes_) return at->work;
  const Sample& before = *(at - 1);
  return before.work + (at->work - before.work) * static_cast<double>(number - before.done) /
                           static_cast<double>(at->done - before.done);
}

double Rate::Cost(uint64_t number, double work) const {
  const uint64_t waves = (number - samples_.front().done) / processes_;
  if (waves == 0) return (work - samples_.front().work) / static_cast<double>(processes_);
  const uint64_t measured = waves * processes_;
  return (work - EndOf(number - measured)) / static_cast<double>(measured);
}

double Rate::EndAfter(uint64_t number, uint64_t waves, double cost) const {
  const uint64_t between = waves * processes_;
  return EndOf(number > between ? number - between : 0) + static_cast<double>(between) * cost;
}

std::optional<Duration> Rate::Remaining(uint64_t total) const {
  if (total == 0) return Duration(0);
  if (samples_.empty()) return std::nullopt;
  const Sample& newest = samples_.back();
  if (total <= newest.done) return Duration(0);
  if (processes_ == 0 || newest.done == samples_.front().done) return std::nullopt;
  // The next one has not ended yet: where it is late, that is known before it ends.
  const uint64_t next = newest.done + 1;
  const double cost = std::max(Cost(newest.done, newest.work), Cost(next, work_));
  const double late = std::max(0.0, work_ - EndAfter(next, 1, cost));
  const uint64_t waves = (total - newest.done + processes_ - 1) / processes_;
  const double left =
      (EndAfter(total, waves, cost) + late - work_) / static_cast<double>(processes_);
  if (left <= 0) return std::nullopt;
  return Duration(static_cast<int64_t>(left));
}

}  // namespace parallelrun::job
