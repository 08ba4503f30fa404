#include "base/hex.h"

#include <charconv>
#include <cstddef>
#include <system_error>

namespace parallelrun {
namespace {

constexpr size_t kMostDigits = 16;

}  // namespace

std::string Hex(std::span<const uint8_t> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const uint8_t byte : bytes) text += {kDigits[byte >> 4], kDigits[byte & 15]};
  return text;
}

std::string Hex(std::string_view bytes) {
  return Hex(std::span(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()));
}

std::optional<uint64_t> ParseHex(std::string_view digits) {
  if (digits.size() > kMostDigits) return std::nullopt;
  uint64_t number = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stopped, error] = std::from_chars(digits.data(), end, number, 16);
  return error == std::errc() && stopped == end ? std::optional(number) : std::nullopt;
}

}  // namespace parallelrun
