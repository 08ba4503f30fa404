#include "api/sizes.h"

#include <cctype>
#include <charconv>
#include <limits>
#include <optional>

#include "api/node.h"
#include "api/text.h"

namespace parallelrun::api {
namespace {

using Wide = unsigned __int128;
constexpr Wide kMost = static_cast<Wide>(std::numeric_limits<int64_t>::max());

Error BadSize(std::string_view text, const std::string& mend) {
  return {Code::kInvalid, Quoted(text) + " is not a size: " + mend};
}

// What was most likely meant: "10Mi", "10 MB", "10M", "1.5MB", "10B".
std::string SizeMend(std::string_view text) {
  constexpr std::string_view kGeneral = "write a number, or a number with KB, MB or GB";
  size_t digits = 0;
  while (digits < text.size() && IsDigit(text[digits])) ++digits;
  if (digits == 0 || digits > 18) return std::string(kGeneral);
  std::string_view unit = text.substr(digits);
  while (!unit.empty() && unit[0] == ' ') unit.remove_prefix(1);
  const std::string number(text.substr(0, digits));
  if (unit.empty() || unit == "B" || unit == "b") return "write " + number;
  const char letter = static_cast<char>(std::toupper(static_cast<unsigned char>(unit[0])));
  const std::string_view rest = unit.substr(1);
  if ((letter == 'K' || letter == 'M' || letter == 'G') &&
      (rest.empty() || rest == "i" || rest == "iB" || rest == "b" || rest == "B")) {
    return "write " + number + letter + "B (powers of 1024)";
  }
  return std::string(kGeneral);
}

struct Suffix {
  int decimal = 0;  // power of 10
  int binary = 0;   // power of 2
};

std::optional<Suffix> ReadSuffix(std::string_view text) {
  if (text.empty()) return Suffix{};
  if ((text[0] == 'e' || text[0] == 'E') && text.size() > 1 && text[1] != 'i') {
    text.remove_prefix(text[1] == '+' ? 2 : 1);
    int exponent = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, exponent);
    if (text.empty() || error != std::errc() || stop != end) return std::nullopt;
    return Suffix{exponent, 0};
  }
  constexpr std::string_view kBinary = "KMGTPE";
  if (text.size() == 2 && text[1] == 'i' && kBinary.find(text[0]) != std::string_view::npos) {
    return Suffix{0, 10 * (static_cast<int>(kBinary.find(text[0])) + 1)};
  }
  if (text.size() != 1) return std::nullopt;
  switch (text[0]) {
    case 'n': return Suffix{-9, 0};
    case 'u': return Suffix{-6, 0};
    case 'm': return Suffix{-3, 0};
    case 'k': return Suffix{3, 0};
    case 'M': return Suffix{6, 0};
    case 'G': return Suffix{9, 0};
    case 'T': return Suffix{12, 0};
    case 'P': return Suffix{15, 0};
    case 'E': return Suffix{18, 0};
    default: return std::nullopt;
  }
}

}  // namespace

Result<SizeText> ParseSize(std::string_view text) {
  uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  const std::string_view unit(stop, static_cast<size_t>(end - stop));
  if (error == std::errc::result_out_of_range) return BadSize(text, "it is too large");
  if (error != std::errc()) return BadSize(text, SizeMend(text));
  int shift = 0;
  if (!unit.empty()) {
    if (unit.size() != 2 || (unit[1] != 'b' && unit[1] != 'B')) {
      return BadSize(text, SizeMend(text));
    }
    switch (unit[0]) {
      case 'k':
      case 'K': shift = 10; break;
      case 'm':
      case 'M': shift = 20; break;
      case 'g':
      case 'G': shift = 30; break;
      default: return BadSize(text, SizeMend(text));
    }
  }
  if (number > (static_cast<uint64_t>(kMost) >> shift)) return BadSize(text, "it is too large");
  if (number == 0) return Error{Code::kInvalid, Quoted(text) + " is too small: write at least 1"};
  return SizeText{number << shift, shift > 0};
}

Result<int64_t> ParseQuantity(std::string_view text, int64_t scale) {
  const auto bad = [&](const std::string& mend) {
    return Error{Code::kInvalid, Quoted(text) + " is not a quantity: " + mend};
  };
  if (!text.empty() && text[0] == '-') return bad("it must not be negative");
  std::string_view rest = text;
  if (!rest.empty() && rest[0] == '+') rest.remove_prefix(1);
  Wide digits = 0;
  int decimal = 0;
  bool point = false;
  size_t count = 0;
  while (!rest.empty() && (IsDigit(rest[0]) || (rest[0] == '.' && !point))) {
    if (rest[0] == '.') {
      point = true;
    } else {
      if (++count > 18) return bad("it has too many digits");
      digits = digits * 10 + static_cast<Wide>(rest[0] - '0');
      if (point) --decimal;
    }
    rest.remove_prefix(1);
  }
  const std::optional<Suffix> suffix = ReadSuffix(rest);
  if (count == 0 || !suffix) {
    const bool bytes = rest.size() == 2 && (rest[1] == 'B' || rest[1] == 'b');
    return bad(bytes && count > 0 ? "write it as in 512Mi or 4Gi"
                                  : "write it as in 500m, 2, 512Mi or 4Gi");
  }
  if (digits == 0) return int64_t{0};
  decimal += suffix->decimal;
  // Below 10^18 and scaled by at most 1000: certain of its result outside of these powers.
  if (decimal > 30) return bad("it is too large");
  if (decimal < -30) return int64_t{1};
  Wide value = digits;
  const auto multiply = [&](Wide factor) {
    if (value > ~Wide{0} / factor) return false;
    value *= factor;
    return true;
  };
  bool fits = multiply(static_cast<Wide>(scale)) && multiply(Wide{1} << suffix->binary);
  for (; fits && decimal > 0; --decimal) fits = multiply(10);
  Wide divisor = 1;
  for (; decimal < 0; ++decimal) divisor *= 10;
  const Wide whole = value / divisor + (value % divisor != 0 ? 1 : 0);
  if (!fits || whole > kMost) return bad("it is too large");
  return static_cast<int64_t>(whole);
}

}  // namespace parallelrun::api
