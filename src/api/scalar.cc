#include "api/scalar.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <system_error>

#include "api/text.h"

namespace parallelrun::api {
namespace {

template <size_t n>
bool IsOneOf(std::string_view text, const std::array<std::string_view, n>& words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

constexpr std::array<std::string_view, 5> kNull = {"", "~", "null", "Null", "NULL"};
constexpr std::array<std::string_view, 11> kTrue = {"y",    "Y",    "yes", "Yes", "YES", "true",
                                                    "True", "TRUE", "on",  "On",  "ON"};
constexpr std::array<std::string_view, 11> kFalse = {"n",     "N",     "no",  "No",  "NO", "false",
                                                     "False", "FALSE", "off", "Off", "OFF"};
constexpr std::array<std::string_view, 12> kNotFinite = {".inf",  ".Inf",  ".INF",  "+.inf",
                                                         "+.Inf", "+.INF", "-.inf", "-.Inf",
                                                         "-.INF", ".nan",  ".NaN",  ".NAN"};

// [-+]?(0x|0o|0b|0)?digits, all of `text`. A magnitude above 64 bits is nullopt.
std::optional<Node> Integer(std::string_view text, std::string_view written) {
  std::string_view digits = text;
  const bool negative = !digits.empty() && digits[0] == '-';
  if (!digits.empty() && (digits[0] == '-' || digits[0] == '+')) digits.remove_prefix(1);
  int base = 10;
  if (digits.size() > 1 && digits[0] == '0') {
    const char letter = static_cast<char>(std::tolower(static_cast<unsigned char>(digits[1])));
    base = letter == 'x' ? 16 : letter == 'b' ? 2 : 8;
    digits.remove_prefix(IsDigit(letter)                                   ? 1
                         : letter == 'x' || letter == 'b' || letter == 'o' ? 2
                                                                           : 0);
  }
  uint64_t magnitude = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, magnitude, base);
  if (error != std::errc() || stop != end) return std::nullopt;
  constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();
  if (magnitude > kMost + (negative ? 1 : 0)) {
    const double value = static_cast<double>(magnitude);
    return NumberNode(negative ? -value : value, written);
  }
  Node node;
  node.kind = Node::Kind::kInteger;
  node.integer = static_cast<int64_t>(negative ? 0 - magnitude : magnitude);
  node.text = written;
  return node;
}

// [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?
bool IsDecimal(std::string_view text) {
  size_t at = 0;
  const auto digits = [&] {
    const size_t first = at;
    while (at < text.size() && IsDigit(text[at])) ++at;
    return at - first;
  };
  if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
  const bool whole = digits() > 0;
  if (at < text.size() && text[at] == '.') {
    ++at;
    if (digits() == 0 && !whole) return false;
  } else if (!whole) {
    return false;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
    if (digits() == 0) return false;
  }
  return at == text.size();
}

// Underscores are dropped from numbers; after a leading dot only those between two digits.
bool UnderscoresAllowed(std::string_view text) {
  if (text[0] != '.') return text[0] != '_';
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') continue;
    if (i + 1 == text.size() || !IsDigit(text[i - 1]) || !IsDigit(text[i + 1])) return false;
  }
  return true;
}

}  // namespace

Node NumberNode(double value, std::string_view text) {
  Node node;
  node.text = text;
  constexpr double kLimit = 9223372036854775808.0;  // 2^63: the first that does not fit
  if (value == std::trunc(value) && value >= -kLimit && value < kLimit) {
    node.kind = Node::Kind::kInteger;
    node.integer = static_cast<int64_t>(value);
  } else {
    node.kind = Node::Kind::kNumber;
    node.number = value;
  }
  return node;
}

std::optional<Node> ResolveScalar(std::string_view text) {
  Node node;
  node.text = text;
  if (IsOneOf(text, kNull)) return node;
  if (IsOneOf(text, kNotFinite)) return std::nullopt;
  const bool is_true = IsOneOf(text, kTrue);
  if (is_true || IsOneOf(text, kFalse)) {
    node.kind = Node::Kind::kBool;
    node.boolean = is_true;
    return node;
  }
  node.kind = Node::Kind::kString;
  const char first = text[0];
  if (!IsDigit(first) && first != '-' && first != '+' && first != '.') return node;
  if (!UnderscoresAllowed(text)) return node;
  std::string plain(text);
  std::erase(plain, '_');
  if (first != '.') {
    if (std::optional<Node> integer = Integer(plain, text)) return integer;
  }
  if (!IsDecimal(plain)) return node;
  // from_chars knows no plus sign.
  const char* const begin = plain.data() + (plain[0] == '+' ? 1 : 0);
  double value = 0;
  const auto [stop, error] = std::from_chars(begin, plain.data() + plain.size(), value);
  // Too large is text to the API server; too small is zero.
  if (error == std::errc::result_out_of_range) {
    const double rounded = std::strtod(begin, nullptr);
    if (std::isinf(rounded)) return node;
    value = rounded;
  }
  return NumberNode(value, text);
}

}  // namespace parallelrun::api
