// What the planner needs of a Parquet file's footer: how many rows each row group has and about how
// many bytes. The footer is a Thrift struct in the compact protocol, of which all other fields are
// skipped. Bytes are not trusted: parsing ends with an error or a value, in time and memory bounded
// by their number. Pure, thread-safe.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace parallelrun::plan {

struct ParquetRowGroup {
  uint64_t rows = 0;
  uint64_t bytes = 0;  // in the file; where it does not say, of the decoded columns
};

// `footer` is the FileMetaData alone. kInvalid, without the name of the file, when it is not one.
Result<std::vector<ParquetRowGroup>> ParseParquetFooter(std::string_view footer);

}  // namespace parallelrun::plan
