// What stands between the fields of delimited text: one byte, or several. In a run of them the
// first place counts, and they do not overlap: by "||" the fields of "a|||b" are "a" and "|b".
// Plain data; thread-safe.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "api/text.h"

namespace parallelrun::plan {

class Delimiter {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): a character is one
  constexpr Delimiter(char one) : bytes_{one} {}
  // Of 1 to api::kMostDelimiter bytes; what is beyond is not looked at.
  explicit Delimiter(std::string_view bytes)
      : size_(static_cast<uint8_t>(std::clamp<size_t>(bytes.size(), 1, api::kMostDelimiter))) {
    std::copy_n(bytes.begin(), std::min<size_t>(bytes.size(), size_), bytes_.begin());
  }

  char front() const { return bytes_.front(); }
  size_t size() const { return size_; }
  std::string_view bytes() const { return {bytes_.data(), size_}; }

  // Whether it stands there.
  bool IsAt(std::string_view text, size_t at) const {
    if (size_ == 1) return at < text.size() && text[at] == front();
    return at <= text.size() && text.substr(at, size_) == bytes();
  }

  // For texts that come byte by byte: of how many of its bytes the text ends with, where it ended
  // with `seen` of them before `c`. size() where it is whole, behind which one begins with 0.
  size_t Seen(size_t seen, char c) const {
    if (c == bytes_[seen]) return seen + 1;
    // Of what was seen, the end may be a front of it again.
    for (size_t fewer = seen; fewer > 0; --fewer) {
      const std::string_view front = bytes().substr(0, fewer - 1);
      if (bytes_[fewer - 1] == c && bytes().substr(0, seen).ends_with(front)) return fewer;
    }
    return 0;
  }

 private:
  std::array<char, api::kMostDelimiter> bytes_{};
  uint8_t size_ = 1;
};

}  // namespace parallelrun::plan
