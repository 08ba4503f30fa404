// Cuts one Parquet file into runs of whole row groups, by its footer alone: a file with one row
// group is one slice. In its slices `offset` is the first row group, `length` their number. Memory:
// 16 bytes a row group, and the footer while the file is opened. Blocking I/O; not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "coordinator/plan/parquet_footer.h"
#include "coordinator/plan/parquet_schema.h"
#include "coordinator/plan/row_splitter.h"

namespace parallelrun {

class ParquetSplitter : public RowSplitter {
 public:
  // kInvalid for a file that is not Parquet, or whose footer is encrypted.
  static Result<std::unique_ptr<ParquetSplitter>> Open(const Files& files, const std::string& path);

  FileStamp stamp() const override { return stamp_; }
  void Seek(uint64_t row_group) override { next_ = row_group; }
  // The next row groups that together have at least `size` bytes in the file.
  Result<std::optional<Slice>> Next(uint64_t size) override;

 private:
  ParquetSplitter(std::string path, FileStamp stamp, std::vector<ParquetRowGroup> groups);

  const std::string path_;
  const FileStamp stamp_;
  const std::vector<ParquetRowGroup> groups_;
  uint64_t next_ = 0;
};

// The columns of a file, none where it has no row. Errors are those of ParquetSplitter::Open.
Result<std::vector<ParquetColumn>> ReadParquetColumns(const Files& files, const std::string& path);

}  // namespace parallelrun
