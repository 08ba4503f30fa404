#include "plan/columns/missing_forms.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <system_error>

namespace parallelrun::plan {
namespace {

// The zeros of the decimal digits of Unicode 14 but those of ASCII; the other nine follow each.
// Pythons of a later Unicode have a few more.
constexpr std::array<char32_t, 65> kZeros = {
    0x660,   0x6F0,   0x7C0,   0x966,   0x9E6,   0xA66,   0xAE6,   0xB66,   0xBE6,   0xC66,
    0xCE6,   0xD66,   0xDE6,   0xE50,   0xED0,   0xF20,   0x1040,  0x1090,  0x17E0,  0x1810,
    0x1946,  0x19D0,  0x1A80,  0x1A90,  0x1B50,  0x1BB0,  0x1C40,  0x1C50,  0xA620,  0xA8D0,
    0xA900,  0xA9D0,  0xA9F0,  0xAA50,  0xABF0,  0xFF10,  0x104A0, 0x10D30, 0x11066, 0x110F0,
    0x11136, 0x111D0, 0x112F0, 0x11450, 0x114D0, 0x11650, 0x116C0, 0x11730, 0x118E0, 0x11950,
    0x11C50, 0x11D50, 0x11DA0, 0x16A60, 0x16AC0, 0x16B50, 0x1D7CE, 0x1D7D8, 0x1D7E2, 0x1D7EC,
    0x1D7F6, 0x1E140, 0x1E2F0, 0x1E950, 0x1FBF0};

bool IsAsciiDigit(char c) { return c >= '0' && c <= '9'; }
bool IsAsciiBlank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

bool IsOtherBlank(char32_t c) {
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

// Takes the next character off, which begins with a byte of 0x80 or more.
char32_t TakeCharacter(std::string_view& text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const size_t wanted = byte(0) >= 0xF0 ? 4 : byte(0) >= 0xE0 ? 3 : 2;
  const size_t size = std::min(wanted, text.size());
  char32_t character = byte(0) & (0x7FU >> wanted);
  for (size_t i = 1; i < size; ++i) character = character << 6 | (byte(i) & 0x3FU);
  text.remove_prefix(size);
  return character;
}

// Digits and blanks of ASCII in place of the others; nothing where another character is in it.
std::optional<std::string> InAscii(std::string_view text) {
  std::string ascii;
  while (!text.empty()) {
    if (static_cast<unsigned char>(text.front()) < 0x80) {
      ascii += text.front();
      text.remove_prefix(1);
      continue;
    }
    const char32_t character = TakeCharacter(text);
    const auto above = std::upper_bound(kZeros.begin(), kZeros.end(), character);
    if (IsOtherBlank(character)) {
      ascii += ' ';
    } else if (above != kZeros.begin() && character - *(above - 1) < 10) {
      ascii += static_cast<char>('0' + (character - *(above - 1)));
    } else {
      return std::nullopt;
    }
  }
  return ascii;
}

// As from_chars reads it, if it is a number: without blanks around it, the underscores between
// digits, and a plus.
std::optional<std::string> PlainNumber(std::string_view text) {
  const std::optional<std::string> ascii = InAscii(text);
  if (!ascii) return std::nullopt;
  std::string_view rest = *ascii;
  while (!rest.empty() && IsAsciiBlank(rest.front())) rest.remove_prefix(1);
  while (!rest.empty() && IsAsciiBlank(rest.back())) rest.remove_suffix(1);
  std::string plain;
  for (size_t i = 0; i < rest.size(); ++i) {
    if (rest[i] != '_') {
      plain += rest[i];
    } else if (i == 0 || !IsAsciiDigit(rest[i - 1]) || i + 1 == rest.size() ||
               !IsAsciiDigit(rest[i + 1])) {
      return std::nullopt;
    }
  }
  if (plain.starts_with('+')) {
    plain.erase(0, 1);
    if (plain.starts_with('-')) return std::nullopt;
  }
  // Words that C knows and Python does not: "nan(1)".
  if (plain.find('(') != std::string::npos) return std::nullopt;
  return plain;
}

// Of a number that no double holds: whether it is too large, and not too small.
bool IsTooLarge(std::string_view number) {
  constexpr int64_t kFar = 1'000'000'000;  // more than any text has digits
  const size_t end = std::min(number.find_first_of("eE"), number.size());
  int64_t exponent = 0;
  if (end < number.size()) {
    std::string_view digits = number.substr(end + 1);
    if (digits.starts_with('+')) digits.remove_prefix(1);
    const auto [stop, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
    if (error == std::errc::result_out_of_range) return !digits.starts_with('-');
    exponent = std::clamp(exponent, -kFar, kFar);
  }
  const std::string_view digits = number.substr(0, end);
  const auto point = static_cast<int64_t>(std::min(digits.find('.'), digits.size()));
  const auto first = static_cast<int64_t>(digits.find_first_of("123456789"));
  return exponent + point - first > 0;
}

// As int() writes it; nothing where it is no whole number to it.
std::optional<std::string> WholeNumber(const std::string& plain) {
  const bool negative = plain.starts_with('-');
  const std::string_view digits = std::string_view(plain).substr(negative ? 1 : 0);
  if (digits.empty() || !std::all_of(digits.begin(), digits.end(), IsAsciiDigit)) {
    return std::nullopt;
  }
  const size_t first = digits.find_first_not_of('0');
  if (first == std::string_view::npos) return "0";
  return (negative ? "-" : "") + std::string(digits.substr(first));
}

std::optional<double> ValueOf(const std::string& plain) {
  double value = 0;
  const char* const end = plain.data() + plain.size();
  const auto [stop, error] = std::from_chars(plain.data(), end, value);
  if (plain.empty() || stop != end || error == std::errc::invalid_argument) return std::nullopt;
  if (error != std::errc::result_out_of_range) return value;
  const double size = IsTooLarge(plain) ? std::numeric_limits<double>::infinity() : 0;
  return plain.starts_with('-') ? -size : size;
}

}  // namespace

std::optional<double> PythonFloat(std::string_view text) {
  const std::optional<std::string> plain = PlainNumber(text);
  return plain ? ValueOf(*plain) : std::nullopt;
}

std::vector<std::string> OtherFormsOf(std::string_view word) {
  const std::optional<std::string> plain = PlainNumber(word);
  const std::optional<double> value = plain ? ValueOf(*plain) : std::nullopt;
  if (!value || !std::isfinite(*value)) return {};
  if (*value != std::trunc(*value)) return {fmt::format("{}", *value)};
  std::string text = fmt::format("{:.0f}", *value + 0.0);  // -0 is 0
  std::vector<std::string> forms = {text + ".0", std::move(text)};
  // Beyond 2^53 it may be another one than that of float().
  if (std::optional<std::string> whole = WholeNumber(*plain)) forms.push_back(std::move(*whole));
  return forms;
}

}  // namespace parallelrun::plan
