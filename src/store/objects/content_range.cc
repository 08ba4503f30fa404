#include "store/objects/content_range.h"

#include <charconv>
#include <system_error>

namespace parallelrun::store {
namespace {

// Takes the number in front of `text`, and the character behind it.
std::optional<uint64_t> TakeNumber(std::string_view& text, char behind) {
  uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stopped == end || *stopped != behind) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(stopped - text.data()) + 1);
  return number;
}

}  // namespace

std::optional<ContentRange> ParseContentRange(std::string_view header) {
  constexpr std::string_view kUnit = "bytes ";
  if (!header.starts_with(kUnit)) return std::nullopt;
  header.remove_prefix(kUnit.size());
  const std::optional<uint64_t> first = TakeNumber(header, '-');
  if (!first) return std::nullopt;
  const std::optional<uint64_t> last = TakeNumber(header, '/');
  if (!last || *last < *first) return std::nullopt;
  if (header == "*") return ContentRange{*first, *last, std::nullopt};
  uint64_t total = 0;
  const char* const end = header.data() + header.size();
  const auto [stopped, error] = std::from_chars(header.data(), end, total);
  if (error != std::errc() || stopped != end) return std::nullopt;
  return ContentRange{*first, *last, total};
}

}  // namespace parallelrun::store
