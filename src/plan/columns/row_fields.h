// Takes the rows of delimited text apart into unquoted fields, as pandas.read_csv (C engine) does;
// what a row is: plan/row_scanner.h. The text may come in parts: a row that is not
// whole is begun anew once more of it is there. Pure; not thread-safe.
//
// Of 64 bytes at a time it is told which matter within an unquoted field, one bit a byte, so that
// what lies between two of these is not looked at again.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "plan/row_scanner.h"

namespace parallelrun::plan {

class RowFields {
 public:
  // With `format.quoted` false a line end within quotes ends the row all the same.
  explicit RowFields(RowSyntax format);

  // Takes the next row off `bytes`, of which nothing follows where `last`; false when they hold no
  // whole row any more. Lines that are no rows are passed over. `bytes` are those of the call
  // before, perhaps with more behind them.
  bool Next(std::string_view bytes, bool last);
  // Of `bytes`, behind the row, or behind what was passed over.
  size_t used() const { return used_; }
  // The bytes up to `used` were removed.
  void Forget();

  // Of the row; views into `bytes` or into this.
  const std::vector<std::string_view>& fields() const { return fields_; }
  size_t begin() const { return begin_; }
  // A quote stands where none belongs: within an unquoted field, or text behind a closing one.
  bool stray_quote() const { return stray_; }
  // Line ends before the row; within rows they count too.
  uint64_t lines() const { return lines_; }

 private:
  enum class Took : uint8_t { kField, kRow, kMore };
  // What a byte means within an unquoted field.
  enum class Mark : uint8_t { kNone, kDelimiter, kLineFeed, kReturn, kOther };
  static constexpr size_t kNoBlock = static_cast<size_t>(-1);

  Mark MarkOf(char c) const { return marks_[static_cast<unsigned char>(c)]; }
  uint64_t MarksIn(const char* block) const;
  size_t NextMark(std::string_view bytes, size_t at);
  size_t NextInQuotes(std::string_view bytes, size_t at);
  bool TakePlainFields(std::string_view bytes, size_t& at);
  bool PassOver(std::string_view bytes, bool last);
  Took TakeField(std::string_view bytes, bool last, size_t& at);
  // Goes on behind the opening quote; false where more of the text is needed, as for the next one.
  bool TakeQuoted(std::string_view bytes, bool last, size_t& at, std::string_view& field);
  // Puts the field behind `text`, if there is one.
  bool TakePlain(std::string_view bytes, bool last, size_t& at, std::string* text,
                 std::string_view& field);
  // One character behind an escape; false as above.
  bool TakeEscaped(std::string_view bytes, bool last, size_t& at, std::string& text);
  bool IsComment(char c) const { return format_.comment != 0 && c == format_.comment; }
  bool Delimits(std::string_view bytes, size_t at) const {
    return format_.delimiter.IsAt(bytes, at);
  }
  bool IsQuote(char c) const { return format_.quote != 0 && c == format_.quote; }
  bool IsEscape(char c) const { return format_.escape != 0 && c == format_.escape; }
  std::string& Scratch();

  const RowSyntax format_;
  std::array<Mark, 256> marks_{};
  std::string marked_;                 // bytes with a mark
  size_t block_ = kNoBlock;            // whose marks are known
  uint64_t marks_in_block_ = 0;        // a bit for each byte
  std::array<bool, 256> in_quotes_{};  // bytes that matter within quotes
  bool only_quotes_ = true;            // the quote is the only one
  // Between these nothing matters within quotes: the row of an open quote, which may be long, is
  // begun anew with each part of the text.
  size_t quiet_begin_ = 0;
  size_t quiet_end_ = 0;
  size_t used_ = 0;
  size_t begin_ = 0;
  uint64_t lines_ = 0;  // before the row
  uint64_t lines_after_ = 0;
  uint64_t lines_in_row_ = 0;
  bool stray_ = false;
  std::vector<std::string_view> fields_;
  std::deque<std::string> scratch_;  // fields that are no part of the text as it is
  size_t scratch_used_ = 0;
};

// How many lines end in `text`; CR LF is one.
uint64_t CountLineEnds(std::string_view text);

}  // namespace parallelrun::plan
