// What happened over time, in at most 600 points however long it takes: when they are full, each
// two become one. Pure; not thread-safe; 35 kB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/time.h"

namespace parallelrun::coordinator {

class TimeSeries {
 public:
  static constexpr size_t kMost = 600;
  static constexpr Duration kFirstStep = milliseconds(100);

  // Attempts that ended within one step.
  struct Point {
    uint64_t succeeded = 0;
    uint64_t failed = 0;
    uint64_t items = 0;       // of those that succeeded
    uint64_t run_ns = 0;      // of both
    uint64_t longest_ns = 0;  // run() of one

    void Add(const Point& other);
    bool operator==(const Point&) const = default;
  };

  // `at`: since the beginning; what is before it counts as its first moment.
  void Add(Duration at, const Point& point);

  Duration step() const { return step_; }
  // From the beginning on, without a gap; the last one may be under way.
  const std::vector<Point>& points() const { return points_; }

 private:
  void Merge();

  Duration step_ = kFirstStep;
  std::vector<Point> points_;
};

}  // namespace parallelrun::coordinator
