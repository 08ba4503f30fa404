#include "store/objects/http_date.h"

#include <spdlog/fmt/fmt.h>

#include <array>
#include <ctime>

namespace parallelrun::store {

std::string HttpDate(WallTime time) {
  static constexpr std::array kDays{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr std::array kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const time_t whole = std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count();
  tm parts{};
  gmtime_r(&whole, &parts);
  return fmt::format("{}, {:02} {} {:04} {:02}:{:02}:{:02} GMT", kDays.at(parts.tm_wday),
                     parts.tm_mday, kMonths.at(parts.tm_mon), parts.tm_year + 1900, parts.tm_hour,
                     parts.tm_min, parts.tm_sec);
}

std::optional<WallTime> ParseHttpDate(const std::string& text) {
  tm parts{};
  const char* end = strptime(text.c_str(), "%a, %d %b %Y %H:%M:%S", &parts);
  if (end == nullptr || std::string(end) != " GMT") return std::nullopt;
  return WallTime(seconds(timegm(&parts)));
}

}  // namespace parallelrun::store
