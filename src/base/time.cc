#include "base/time.h"

#include <spdlog/fmt/fmt.h>
#include <time.h>

namespace parallelrun {

WallTime SystemClock::WallNow() const {
  timespec ts{};
  clock_gettime(CLOCK_REALTIME, &ts);
  return WallTime(seconds(ts.tv_sec) + microseconds(ts.tv_nsec / 1000));
}

std::string Rfc3339(WallTime time) {
  const time_t whole = std::chrono::floor<seconds>(time.time_since_epoch()).count();
  tm utc{};
  gmtime_r(&whole, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", utc.tm_year + 1900, utc.tm_mon + 1,
                     utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec);
}

std::string HumanDuration(Duration duration) {
  const int64_t ms = std::chrono::duration_cast<milliseconds>(duration).count();
  const int64_t s = ms / 1000;
  if (ms < 1000) return fmt::format("{}ms", ms);
  if (s < 60) return fmt::format("{:.1f}s", static_cast<double>(ms) / 1000);
  if (s < 3600) return fmt::format("{}m{:02}s", s / 60, s % 60);
  if (s < 86400) return fmt::format("{}h{:02}m", s / 3600, s / 60 % 60);
  return fmt::format("{}d{:02}h", s / 86400, s / 3600 % 24);
}

}  // namespace parallelrun
