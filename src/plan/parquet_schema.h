// The columns of a Parquet file, as its footer tells them: of each the type, whether it has nulls,
// and the range of its integers. Bytes are not trusted: parsing ends with an error or a value, in
// time and memory bounded by their number. Pure, thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "plan/parquet_nulls.h"
#include "plan/parquet_type.h"

namespace parallelrun::plan {

struct ParquetRange {
  int64_t min = 0;
  int64_t max = 0;
};

struct ParquetColumn {
  std::string name;
  ParquetType type;
  bool nulls = false;  // it has some, or nobody says
  // Of what is stored as integers, where the footer tells it of each row group and it is below 2⁶³;
  // from 0 to 0 where there is no value.
  std::optional<ParquetRange> range = {};
  // Where the footer neither says that it has some nor that it has none, and that decides how it is
  // read: the row groups of which it does not say. Their `nulls` is true.
  std::vector<ParquetChunk> untold = {};
};

// The columns at the top. `footer` is the FileMetaData alone; kInvalid, without the name of the
// file, when it is not one.
Result<std::vector<ParquetColumn>> ParseParquetColumns(std::string_view footer);

}  // namespace parallelrun::plan
