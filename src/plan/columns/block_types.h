// What the columns of one block of delimited text hold. A block that does not begin with a row may
// begin within quotes or not: it is read under both assumptions, and the one that fits is taken.
// Pure; not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plan/columns/field_class.h"
#include "plan/columns/row_fields.h"
#include "plan/columns/seen_rows.h"

namespace parallelrun::plan {

// Where a block lies, and how it is read.
struct BlockPlace {
  std::string file;        // as it is told
  uint64_t offset = 0;     // of its first byte
  uint64_t line = 0;       // of its first byte, from 1; 0: not known
  bool begins_row = true;  // a row begins with it
  bool ends_file = true;   // nothing follows it
  // Behind the last column of its rows: EndsWithDelimiter (table_header.h).
  bool delimiter_at_end = false;
};

// Which rows are looked for that no mini-batch would take.
struct BadRowsWanted {
  bool any = false;
  bool utf8 = false;  // bytes that are not UTF-8 make one
};

// One reading of a block.
class BlockReading {
 public:
  enum class From : uint8_t { kRow, kOutsideQuotes, kWithinQuotes };

  BlockReading(RowSyntax format, const MissingWords& missing, size_t columns, BlockPlace place,
               From from, BadRowsWanted wanted = {});

  void Feed(std::string_view bytes);
  void Finish();

  // Rows that are left out, for they do not look like those of the table, are not among them.
  const SeenRows& seen() const { return seen_; }
  uint64_t odd_rows() const { return odd_rows_; }
  // A row was too long to be one: the rest was not read.
  bool given_up() const { return !seen_.all; }

 private:
  void TakeRows(bool last);
  void TakeRow();
  void LookAtFields(const std::vector<std::string_view>& texts);
  FieldPlace PlaceOfRow() const;
  void LookAtRow(size_t width);

  const MissingWords& missing_;
  const BlockPlace place_;
  const From from_;
  const BadRowsWanted wanted_;
  RowFields fields_;
  std::string text_;      // what is not taken yet
  uint64_t offset_ = 0;   // of text_ in the file
  bool cut_row_ = false;  // the next row is the end of one
  SeenRows seen_;
  std::vector<size_t> open_;  // columns whose type may still change
  uint64_t odd_rows_ = 0;
};

// Whether Choose takes the one that has read all of its block, whatever the other one finds behind
// what it has read so far.
bool IsCertain(const BlockReading& outside, const BlockReading& within);

// Of two readings of one block, the one that fits; nullptr where neither does for certain.
const BlockReading* Choose(const BlockReading& outside, const BlockReading& within);

}  // namespace parallelrun::plan
