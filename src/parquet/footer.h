// The footer of a Parquet file: its columns, and where those of each row group stand. It is kept as
// the bytes that will be written: 30 to 50 and the name for each column of a row group. Pure; one
// object makes the footer of one file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "parquet/column.h"

namespace parallelrun::parquet {

// A column of a row group: pages that stand one behind the other.
struct Chunk {
  Codec codec = Codec::kNone;
  uint64_t offset = 0;   // in the file, of the first page's header
  uint64_t bytes = 0;    // with the headers of the pages
  uint64_t decoded = 0;  // the same, before the pages were compressed
  uint64_t values = 0;
};

inline constexpr std::string_view kMagic = "PAR1";  // at both ends of the file

class Footer {
 public:
  explicit Footer(std::vector<Column> columns) : columns_(std::move(columns)) {}

  const std::vector<Column>& columns() const { return columns_; }
  uint64_t groups() const { return count_; }  // so far
  // `chunks`: one for each column, in their order.
  void Add(uint32_t rows, const std::vector<Chunk>& chunks);
  // What stands behind the last row group, to the end of the file. kInvalid: its length is no
  // number of Parquet's.
  Result<std::string> End() const;
  // About how many bytes it takes for so many row groups.
  uint64_t Estimate(uint64_t groups) const;

 private:
  const std::vector<Column> columns_;
  std::string groups_;
  uint64_t count_ = 0;
  uint64_t rows_ = 0;
};

}  // namespace parallelrun::parquet
