// Three kinds of time, as distinct types: monotonic time and working time to decide, wall time to
// show. The compiler refuses one where another is asked for.
// Decisions take the time as an argument; only `main` functions make a `SystemClock`.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace parallelrun {

using Duration = std::chrono::microseconds;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

struct MonotonicTag {
  using rep = Duration::rep;
  using period = Duration::period;
  using duration = Duration;
  static constexpr bool is_steady = true;
};
struct WorkTag {
  using rep = Duration::rep;
  using period = Duration::period;
  using duration = Duration;
  static constexpr bool is_steady = true;
};
struct WallTag {
  using rep = Duration::rep;
  using period = Duration::period;
  using duration = Duration;
  static constexpr bool is_steady = false;
};

// Microseconds of CLOCK_MONOTONIC: comparable between the processes of one boot, never stepped.
using Instant = std::chrono::time_point<MonotonicTag, Duration>;
// Monotonic time less what the process itself lost, stopped or on a host that stood still: for what
// others had time to do. Taken for an Instant, or an Instant for it, it lets leases run out that
// nobody could renew; so only `coordinator::WorkingTime` makes one of the other.
using WorkInstant = std::chrono::time_point<WorkTag, Duration>;
// Microseconds since 1970-01-01 UTC; may jump. Only ever shown or stored, never subtracted to
// decide.
using WallTime = std::chrono::time_point<WallTag, Duration>;

// The clock seam. Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Instant Now() const = 0;
  virtual WallTime WallNow() const = 0;
};

class SystemClock final : public Clock {
 public:
  Instant Now() const override;
  WallTime WallNow() const override;
};

inline double ToSeconds(Duration d) { return std::chrono::duration<double>(d).count(); }

// "2026-11-21T09:00:00Z" (RFC 3339, UTC, whole seconds).
std::string Rfc3339(WallTime time);

// "850ms", "12.3s", "5m04s", "2h05m", "3d04h": for people.
std::string HumanDuration(Duration duration);

}  // namespace parallelrun
