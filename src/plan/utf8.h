// UTF-8 as file names need it: one character at a time, tolerant of bytes that are not UTF-8.
// Pure, thread-safe.
#pragma once

#include <cstddef>
#include <string_view>

namespace parallelrun::plan {

// Values from here on stand for a byte that begins no character: kBadByte + byte.
constexpr char32_t kBadByte = 0x110000;

// Reads the character at `pos` (which must be below text.size()) and moves `pos` behind it.
// Overlong forms, surrogates and values above U+10FFFF are not characters.
inline char32_t NextCharacter(std::string_view text, size_t& pos) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(pos++);
  if (lead < 0x80) return lead;
  const size_t more = lead >= 0xF5 ? 0 : lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : lead >= 0xC2 ? 1 : 0;
  if (more == 0 || text.size() - pos < more) return kBadByte + lead;
  char32_t value = lead & (0x3Fu >> more);
  for (size_t i = 0; i < more; ++i) {
    if ((byte(pos + i) & 0xC0) != 0x80) return kBadByte + lead;
    value = (value << 6) | (byte(pos + i) & 0x3Fu);
  }
  const char32_t least = more == 1 ? 0x80 : more == 2 ? 0x800 : 0x10000;
  if (value < least || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) {
    return kBadByte + lead;
  }
  pos += more;
  return value;
}

}  // namespace parallelrun::plan
