// Cuts one Parquet file into runs of whole row groups, by its footer alone: a file with one row
// group is one slice. In its slices `offset` is the first row group, `length` their number. Memory:
// 16 bytes a row group, and the footer while the file is opened. Blocking I/O; not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "plan/parquet_footer.h"
#include "plan/parquet_schema.h"
#include "plan/row_splitter.h"
#include "store/store.h"

namespace parallelrun::plan {

class ParquetSplitter : public RowSplitter {
 public:
  // kInvalid for a file that is not Parquet, or whose footer is encrypted.
  static Result<std::unique_ptr<ParquetSplitter>> Open(store::Store& store,
                                                       const std::string& name);

  const store::Found& found() const override { return found_; }
  void Seek(uint64_t row_group) override { next_ = row_group; }
  // The next row groups that together have at least `size` bytes in the file.
  Result<std::optional<job::Slice>> Next(uint64_t size) override;

 private:
  ParquetSplitter(std::string path, store::Found found, std::vector<ParquetRowGroup> groups);

  const std::string path_;
  const store::Found found_;
  const std::vector<ParquetRowGroup> groups_;
  uint64_t next_ = 0;
};

// What may still be asked of an input's pages. A column that may have missing values anywhere is
// read as one that has some, so of it nothing more needs to be known.
struct NullReads {
  uint64_t left = kMostNullReads;
  std::set<std::string> settled = {};  // names of columns
};

// The columns of a file, none where it has no row. Where the footer does not say whether they have
// missing values, the pages are asked. Errors are those of ParquetSplitter::Open.
Result<std::vector<ParquetColumn>> ReadParquetColumns(store::Store& store, const std::string& name,
                                                      NullReads& reads);

}  // namespace parallelrun::plan
