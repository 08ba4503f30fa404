// Finds where rows of delimited text end, and counts them, as pandas.read_csv (C engine) does:
// LF, CR LF and a lone CR end a row; a quote opens a quoted field only where a field begins, `""`
// within one is a quote, and line ends within one are text; a line without a byte, or with blanks
// and tabs only, or that begins with a comment, is no row. With `quoted` false a quote is an
// ordinary byte, which is right where no quoted field holds a line end.
//
// Runs of ordinary 64-byte blocks are counted with AVX2 and a carry-less multiplication where the
// CPU has both; blocks with a comment, an escape, a stray quote, a line of blanks, or the end that
// is looked for are left to the byte-wise scanner, which every other CPU uses throughout, and every
// text with a delimiter of several bytes. The encoding must be such that bytes below 0x80 stand for
// ASCII.
//
// On the way it may look at what each field begins with, for types: pandas takes a plus, zeros and
// blanks in front of a number for nothing. Pure; not thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include "plan/delimiter.h"
#include "plan/field_fronts.h"

namespace parallelrun::plan {

inline constexpr uint64_t kAnyField = std::numeric_limits<uint64_t>::max();

struct RowSyntax {
  Delimiter delimiter = ',';  // holds none of the other marks
  bool quoted = true;
  char comment = 0;  // from it on, outside of quotes, the rest of the line is left out; 0: none
  char escape = 0;   // what follows it is text; 0: none
  uint64_t max_field = kAnyField;  // bytes of one field, its quotes included
  bool fronts = false;             // TakeMayLose() is asked for
  char quote = '"';                // 0: none
};

class RowScanner {
 public:
  enum class Kernel { kBest, kBytes };

  explicit RowScanner(RowSyntax format, Kernel kernel = Kernel::kBest);

  struct Step {
    size_t used = 0;
    bool cut = false;       // stopped at an end of line
    bool too_long = false;  // stopped where a field has more than max_field bytes
  };
  // Goes on with `bytes`, adds the rows that end in them to `rows`, and stops behind the first end
  // of line at or after `least` bytes by which `rows` is not 0; else uses all bytes. A cut behind a
  // CR may have split a CR LF: the LF may then be skipped, or be scanned as an empty line.
  Step Scan(std::string_view bytes, size_t least, uint64_t& rows);

  // Bytes so far of the field at hand, or of the one that is too long.
  uint64_t field() const { return field_; }
  // Whether a quote is open: at the end of a text it has swallowed what stands behind it.
  bool open() const { return at_ == At::kQuoted || at_ == At::kEscapedInQuoted; }

  // The columns that may hold what a number loses, as docs/ledger.md has them under `mayLose`, of
  // the rows that were scanned since the last call.
  uint64_t TakeMayLose() { return fronts_.Take(); }

  // Ends the text: adds the row that has no line end, if there is one, and starts over.
  void Finish(uint64_t& rows);

 private:
  // What the bytes so far leave open.
  enum class At : uint8_t {
    kRowStart,
    kBlank,
    kFieldStart,
    kField,
    kQuoted,
    kQuoteInQuoted,
    kEscaped,
    kEscapedInQuoted,
    kComment,
    kLineComment,  // of a line that is no row
  };
  // In the midst of what blocks know nothing of.
  bool OnlyByBytes() const {
    return at_ == At::kBlank || at_ == At::kEscaped || at_ == At::kEscapedInQuoted ||
           at_ == At::kComment || at_ == At::kLineComment;
  }
  bool NoRow() const {
    return at_ == At::kRowStart || at_ == At::kBlank || at_ == At::kLineComment;
  }

  bool PassRun(std::string_view run, size_t& passed);
  void LookAtFront(char c, bool delimits);
  void Pass(char c, bool delimits);
  bool EndsDelimiter(char c);
  Step ScanBytes(std::string_view bytes, size_t begin, size_t end, size_t least, uint64_t& rows);
  size_t ScanBlocks(std::string_view bytes, size_t begin, size_t least, uint64_t& rows);

  RowSyntax format_;
  bool blocks_;  // ScanBlocks may be used
  At at_ = At::kRowStart;
  // The text ends with so many bytes of a delimiter of several, which are not looked at yet.
  size_t seen_ = 0;
  uint64_t field_ = 0;
  FieldFronts fronts_;             // with format_.fronts
  std::array<bool, 256> stops_{};  // bytes that matter within an unquoted field
};

}  // namespace parallelrun::plan
