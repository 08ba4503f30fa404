// The types of the columns of an input of Parquet files, from their footers alone. A schema does
// not fix what pandas makes of a column: integers with missing values are floats in the row groups
// that have one, and integers in the others. So one decision is made for all files, and files that
// differ are cast where that loses nothing. Pure; not thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "plan/parquet_schema.h"

namespace parallelrun::plan {

class ParquetTypes {
 public:
  // One file more. kInvalid, with both files' names, where its columns are others, or cannot be
  // cast to what the files before have, or these to it, without loss; with its own, where two of
  // its columns have one name.
  Status Add(std::string_view path, std::vector<ParquetColumn> columns);

  bool empty() const { return columns_.empty(); }
  // What the ledger keeps: a JSON object with the members that the format of each Work gets
  // (docs/worker-protocol.md).
  std::string Json() const;

 private:
  struct Merged {
    ParquetColumn column;
    std::string path;   // of the file that its type is from
    bool cast = false;  // some file has another type
    // No file says that it has missing values, and some do not say that it has none.
    bool untold = false;
  };
  Status Merge(std::string_view path, const ParquetColumn& column, Merged& into) const;

  std::string first_path_;
  std::vector<Merged> columns_;
};

// The members in what Json() gave, without braces.
std::string ParquetFormatMembers(std::string_view json);

// What people are told of what Json() gave: "columns: id float64, big Int64, name, when
// timestamp[us] (files differ)", cut off behind about `most` bytes. A column without a type is as
// its files have it. Empty where `json` is not what Json() wrote.
std::string ParquetColumnsLine(std::string_view json, size_t most);

// What stands behind that line: the columns that are read as if values were missing because nobody
// says that none is, with about `most` bytes of their names. Empty where there is no such column.
std::string ParquetNullsWarning(std::string_view json, size_t most);

}  // namespace parallelrun::plan
