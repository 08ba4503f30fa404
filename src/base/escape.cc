#include "base/escape.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdint>

namespace parallelrun {
namespace {

struct CodePoint {
  uint32_t value = 0;
  size_t size = 0;  // bytes; 0: not UTF-8
};

// Decodes the character at the front; refuses overlong forms, surrogates and what ends too early.
CodePoint DecodeUtf8(std::string_view text) {
  const auto byte = [text](size_t i) { return uint32_t{static_cast<unsigned char>(text[i])}; };
  const uint32_t first = byte(0);
  if (first < 0x80) return {first, 1};
  const size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < size) return {};
  uint32_t value = first & (0x7fu >> size);
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    value = (value << 6) | (byte(i) & 0x3f);
  }
  constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = value >= 0xd800 && value <= 0xdfff;
  if (value < kSmallest[size] || value > 0x10ffff || surrogate) return {};
  return {value, size};
}

bool IsHidden(uint32_t c) {
  return (c >= 0x80 && c <= 0x9f) || c == 0x061c || c == 0x200e || c == 0x200f || c == 0x2028 ||
         c == 0x2029 || (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0xfeff;
}

// Nearly all that names are made of.
bool StaysInJson(char c) { return static_cast<signed char>(c) >= 0x20 && c != '"' && c != '\\'; }

}  // namespace

std::string Printable(std::string_view user_text, size_t limit) {
  std::string shown;
  while (!user_text.empty()) {
    const CodePoint c = DecodeUtf8(user_text);
    std::string escape;
    if (c.size == 0 || c.value < 0x20 || c.value == 0x7f) {
      switch (user_text[0]) {
        case '\n': escape = "\\n"; break;
        case '\r': escape = "\\r"; break;
        case '\t': escape = "\\t"; break;
        default: escape = fmt::format("\\x{:02x}", static_cast<unsigned char>(user_text[0]));
      }
    } else if (IsHidden(c.value)) {
      escape = fmt::format("\\u{:04x}", c.value);
    }
    const size_t used = c.size == 0 ? 1 : c.size;
    const std::string_view piece = escape.empty() ? user_text.substr(0, used) : escape;
    if (shown.size() + piece.size() > limit) return shown + "...";
    shown += piece;
    user_text.remove_prefix(used);
  }
  return shown;
}

std::string JsonText(std::string_view bytes) {
  std::string text = "\"";
  while (true) {
    const auto plain = std::find_if_not(bytes.begin(), bytes.end(), StaysInJson);
    text.append(bytes.begin(), plain);
    bytes.remove_prefix(static_cast<size_t>(plain - bytes.begin()));
    if (bytes.empty()) return text + '"';
    const CodePoint c = DecodeUtf8(bytes);
    const auto byte = static_cast<unsigned char>(bytes[0]);
    if (c.size == 0) {
      text += fmt::format("\\udc{:02x}", byte);
    } else if (byte == '"' || byte == '\\') {
      text += {'\\', bytes[0]};
    } else if (byte < 0x20) {
      text += fmt::format("\\u{:04x}", byte);
    } else {
      text += bytes.substr(0, c.size);
    }
    bytes.remove_prefix(c.size == 0 ? 1 : c.size);
  }
}

std::string_view Front(std::string_view text, size_t limit) {
  if (text.size() <= limit) return text;
  size_t end = limit;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end);
}

}  // namespace parallelrun
