#include "store/s3/timestamps.h"

#include <algorithm>
#include <ctime>

namespace parallelrun::store::s3 {

std::string CompactTime(WallTime time) {
  std::string text = Rfc3339(time);
  std::erase_if(text, [](char c) { return c == '-' || c == ':'; });
  return text;
}

std::optional<WallTime> ParseIsoTime(const std::string& text) {
  tm parts{};
  const char* end = strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  if (end == nullptr) return std::nullopt;
  std::string rest = end;
  if (rest.starts_with(".")) rest.erase(0, rest.find_first_not_of("0123456789", 1));
  return rest == "Z" || rest == "+00:00" ? std::optional(WallTime(seconds(timegm(&parts))))
                                         : std::nullopt;
}

}  // namespace parallelrun::store::s3
