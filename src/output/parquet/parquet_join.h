// The row groups of mini-batches as one Parquet file (docs/formats.md): pages are copied, whatever
// the order of their columns; what a mini-batch lacks is missing; headers and footer are written
// anew. Memory: the footer, and a page of whole numbers that become numbers. One object joins one
// file.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "output/row_format.h"
#include "parquet/footer.h"
#include "parquet/row_group.h"

namespace parallelrun::output {

class ParquetJoin final : public RowFormat, private parquet::RowGroupTaker {
 public:
  // `columns`: what OutputColumns made of all results.
  explicit ParquetJoin(std::vector<parquet::Column> columns);

  Status Begin(const Put& put) override;
  // kInvalid: a whole number that its column's type does not hold, or a column that the output
  // lacks; kCorrupt: no worker has made it.
  Status Add(std::string_view rows, bool first, const Put& put) override;
  // kCorrupt: the last result has not ended; kInvalid: as Footer::End.
  Status End(const Put& put) override;
  uint64_t Around(uint64_t results) const override { return footer_.Estimate(results); }

 private:
  Status TakeHead(const parquet::RowGroupHead& head) override;
  Status TakeColumn(size_t column) override;
  Status TakePage(const parquet::Page& page) override;
  Status TakeBytes(std::string_view bytes) override;
  Status TakeEnd() override;

  Status Write(std::string_view bytes);
  Status WritePageHeader(const parquet::Page& page);
  Status WriteMissing(size_t column);

  parquet::Footer footer_;
  std::unordered_map<std::string, size_t> places_;  // of the output's columns, by name
  std::optional<parquet::RowGroupReader> reader_;   // of this result
  const Put* put_ = nullptr;                        // during a call
  uint64_t offset_ = 0;                             // of the next byte
  parquet::RowGroupHead head_;
  std::vector<parquet::Chunk> chunks_;  // of this row group, for each column of the output
  size_t column_ = 0;                   // of the output, whose pages come
  bool to_doubles_ = false;
  parquet::Page page_;
  std::string page_bytes_;  // of it, where they are to become doubles
};

}  // namespace parallelrun::output
