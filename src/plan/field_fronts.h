// Finds the columns of delimited text in which a number may lose what stands in front of it, since
// pandas takes a plus, blanks, and zeros before a digit for nothing: `mayLose` of docs/ledger.md.
// Part of a RowScanner, which says where fields and rows end: byte by byte, or of 64 bytes at once
// by their bits. Both may be mixed. Pure; not thread-safe.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include "job/may_lose.h"

namespace parallelrun::plan {

class FieldFronts {
 public:
  // Where there is a quote (not 0), but not `quoted`, nobody knows which delimiters stand within
  // quotes, nor what a field begins with behind some: a quote then says all columns.
  // `delimiter`: the one byte, or the first of several, which no run holds then.
  FieldFronts(char delimiter, char quote, bool quoted)
      : delimiter_(delimiter), quote_(quote), quoted_(quoted && quote != 0) {}

  // Since the last call.
  uint64_t Take() { return std::exchange(found_, 0); }

  void NextRow() { Begin(0); }
  void NextField() { Begin(column_ + 1); }
  // Text of the field at hand, whatever is in it.
  void Text(std::string_view text);
  // What stands outside of quotes in one row: text and delimiters.
  void Run(std::string_view run);
  // The field at hand begins with blanks, or text stands behind its closing quote.
  void Odd();

  // Bits of 64 bytes, the first byte's the lowest.
  struct Bits {
    uint64_t between = 0;   // delimiters and line ends outside of quotes
    uint64_t row_ends = 0;  // these line ends
    uint64_t bounds = 0;    // delimiters and line ends, also within quotes
    uint64_t quotes = 0;
    uint64_t closes = 0;  // quotes that close a field, or stand in front of one that opens it again
    uint64_t loose = 0;   // plus signs, blanks and line ends
    uint64_t minus = 0;
    uint64_t zeros = 0;
    uint64_t digits = 0;
  };
  // What the bytes so far leave open for the next block.
  struct Carry {
    bool begins = false;  // a field, with the next byte
    bool opens = false;   // the last byte has opened its quote
    bool closes = false;  // the last byte may have closed it
  };
  void Block(const Bits& bits, Carry carry);

 private:
  enum class Front : uint8_t { kNothing, kMinus, kZero, kPast };

  void Begin(uint64_t column) {
    front_ = Front::kNothing;
    column_ = column;
  }
  void LookAt(char c);
  void Mark(uint64_t at, uint64_t delimiters, uint64_t row_ends);

  char delimiter_;
  char quote_;
  bool quoted_;
  Front front_ = Front::kNothing;  // what was seen of the text of the field at hand
  uint64_t column_ = 0;
  uint64_t found_ = 0;
};

// Runs for each 64 bytes of an input.
[[gnu::always_inline]] inline void FieldFronts::Block(const Bits& bits, Carry carry) {
  const auto bit = [](bool set) { return static_cast<uint64_t>(set); };
  const uint64_t begins = bits.between << 1 | bit(carry.begins);
  uint64_t found = begins & bits.loose & ~bits.bounds;
  uint64_t firsts = begins & ~bits.bounds;
  if (quoted_) {
    const bool opened = carry.opens && front_ == Front::kNothing;
    const uint64_t inside = (begins & bits.quotes) << 1 | bit(opened);
    firsts |= inside;
    found |= inside & bits.loose;
    found |= (bits.closes << 1 | bit(carry.closes)) & ~(bits.bounds | bits.quotes);
  } else if (bits.quotes != 0) {
    found_ = ~uint64_t{0};
  }
  const uint64_t signs = firsts & bits.minus;
  const uint64_t zeros = (firsts | signs << 1 | bit(front_ == Front::kMinus)) & bits.zeros;
  found |= (zeros << 1 | bit(front_ == Front::kZero)) & bits.digits & ~bits.between;

  const uint64_t delimiters = bits.between & ~bits.row_ends;
  if (found != 0) Mark(found, delimiters, bits.row_ends);
  uint64_t behind = ~uint64_t{0};  // the last end of a row
  if (bits.row_ends != 0) {
    behind = ~(~uint64_t{0} >> __builtin_clzll(bits.row_ends));
    column_ = 0;
  }
  column_ += static_cast<uint64_t>(__builtin_popcountll(delimiters & behind));
  constexpr uint64_t kLast = uint64_t{1} << 63;
  const bool none = ((bits.between | (begins & bits.quotes)) & kLast) != 0;
  front_ = none                   ? Front::kNothing
           : (signs & kLast) != 0 ? Front::kMinus
           : (zeros & kLast) != 0 ? Front::kZero
                                  : Front::kPast;
}

}  // namespace parallelrun::plan
