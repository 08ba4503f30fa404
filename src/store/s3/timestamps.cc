#include "store/s3/timestamps.h"

#include <algorithm>
#include <ctime>

namespace parallelrun::s3 {
namespace {

// What `format` describes at the front of `text`, and where it ended.
std::optional<WallTime> Parse(const std::string& text, const char* format, std::string& rest) {
  tm parts{};
  const char* end = strptime(text.c_str(), format, &parts);
  if (end == nullptr) return std::nullopt;
  rest = end;
  return WallTime(seconds(timegm(&parts)));
}

}  // namespace

std::string CompactTime(WallTime time) {
  std::string text = Rfc3339(time);
  std::erase_if(text, [](char c) { return c == '-' || c == ':'; });
  return text;
}

std::optional<WallTime> ParseIsoTime(const std::string& text) {
  std::string rest;
  const std::optional<WallTime> time = Parse(text, "%Y-%m-%dT%H:%M:%S", rest);
  if (rest.starts_with(".")) rest.erase(0, rest.find_first_not_of("0123456789", 1));
  return rest == "Z" || rest == "+00:00" ? time : std::nullopt;
}

std::optional<WallTime> ParseHttpDate(const std::string& text) {
  std::string rest;
  const std::optional<WallTime> time = Parse(text, "%a, %d %b %Y %H:%M:%S", rest);
  return rest == " GMT" ? time : std::nullopt;
}

}  // namespace parallelrun::s3
