#include "coordinator/page/time_series.h"

#include <algorithm>

namespace parallelrun::coordinator {

void TimeSeries::Point::Add(const Point& other) {
  succeeded += other.succeeded;
  failed += other.failed;
  items += other.items;
  run_ns += other.run_ns;
  longest_ns = std::max(longest_ns, other.longest_ns);
}

void TimeSeries::Add(Duration at, const Point& point) {
  const Duration from = std::max(at, Duration());
  while (from / step_ >= static_cast<int64_t>(kMost)) Merge();
  const auto index = static_cast<size_t>(from / step_);
  if (index >= points_.size()) points_.resize(index + 1);
  points_[index].Add(point);
}

void TimeSeries::Merge() {
  for (size_t i = 1; i < points_.size(); i += 2) points_[i - 1].Add(points_[i]);
  const size_t half = (points_.size() + 1) / 2;
  for (size_t i = 1; i < half; ++i) points_[i] = points_[2 * i];
  points_.resize(half);
  step_ *= 2;
}

}  // namespace parallelrun::coordinator
