// What the text of one field of a delimited file is: missing, an integer, a word and so on, as one
// bit, so that what a column holds is the OR of its fields, in whatever order they were looked at.
// The classes are those that pandas makes of the texts, but for texts that a number would not give
// back. Pure, thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace parallelrun::plan {

// Bits: a column holds several.
using FieldBits = uint16_t;
namespace field {
constexpr FieldBits kMissing = 1 << 0;
constexpr FieldBits kInteger = 1 << 1;
constexpr FieldBits kBig = 1 << 2;  // an integer that a double does not hold for certain
constexpr FieldBits kFraction = 1 << 3;
constexpr FieldBits kBoolean = 1 << 4;
constexpr FieldBits kWord = 1 << 5;  // no number at all
// Numbers whose text would be lost
constexpr FieldBits kLeadingZero = 1 << 6;
constexpr FieldBits kPlus = 1 << 7;
constexpr FieldBits kBeyond = 1 << 8;        // int64
constexpr FieldBits kNoDouble = 1 << 9;      // too large for one
constexpr FieldBits kOddExponent = 1 << 10;  // read differently by versions of pandas
constexpr FieldBits kLost = kLeadingZero | kPlus | kBeyond | kNoDouble | kOddExponent;
}  // namespace field

// The words that stand for a missing value.
class MissingWords {
 public:
  // `words`, and with `defaults` those that pandas has by default. A number among the words stands
  // for its other forms too, as pandas takes it: -999 for -999.0.
  explicit MissingWords(const std::vector<std::string>& words = {}, bool defaults = true);

  bool Has(std::string_view text) const {
    if (text.empty()) return empty_;
    const uint64_t lengths = lengths_[static_cast<unsigned char>(text.front())];
    return (lengths & BitOfLength(text)) != 0 && IsAmong(text);
  }
  // As they were given, the defaults first.
  const std::vector<std::string>& given() const { return given_; }

 private:
  static uint64_t BitOfLength(std::string_view text) {
    return uint64_t{1} << (text.size() < 63 ? text.size() : 63);
  }
  void Add(std::string word);
  bool IsAmong(std::string_view text) const;

  std::vector<std::string> given_;
  std::vector<std::string> words_;
  bool empty_ = false;  // the empty text is one
  // How long the others are, by their first byte: bit n for n bytes, the last one for more.
  std::array<uint64_t, 256> lengths_{};
};

// The bit of `text`, which is unquoted: quotes carry no meaning.
FieldBits Classify(std::string_view text, const MissingWords& missing);

}  // namespace parallelrun::plan
