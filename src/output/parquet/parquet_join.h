// The rows of results as one Parquet file (docs/formats.md): pages are copied, whatever the order
// of their columns; what a result lacks is missing; headers and footer are written anew. Small
// results share a row group, in which each column has their pages one behind the other: readers are
// slow where row groups are small. Which do follows from the sizes that their heads tell, in the
// order of the output, and from nothing else. Memory: the footer, a row group that is shared, and a
// page of whole numbers that become numbers. One object joins one file.
#pragma once

#include <cstdint>
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

// What of several results is in one row group; a larger result has one of its own.
inline constexpr uint64_t kMostSharedBytes = uint64_t{8} << 20;  // as the workers made them
inline constexpr uint32_t kMostSharedRows = uint32_t{1} << 17;

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
  uint64_t Around(const RowsAhead& rows) const override;
  std::optional<uint64_t> RowGroup() const override { return of_result_; }

 private:
  // A column of the row group that is being made.
  struct Part {
    parquet::Chunk chunk;
    std::string bytes;     // of it, until the group ends; none of a result that is alone
    uint32_t missing = 0;  // values behind these, for which there is no page yet
    bool had = false;      // pages of this result
  };

  Status TakeHead(const parquet::RowGroupHead& head) override;
  Status TakeColumn(size_t column) override;
  Status TakePage(const parquet::Page& page) override;
  Status TakeBytes(std::string_view bytes) override;
  Status TakeEnd() override;

  Status EndGroup();
  Status WriteMissing(size_t column);
  Status WritePageHeader(size_t column, const parquet::Page& page);
  Status WriteTo(size_t column, std::string_view bytes);
  Status Write(std::string_view bytes);

  parquet::Footer footer_;
  std::unordered_map<std::string, size_t> places_;  // of the output's columns, by name
  std::optional<parquet::RowGroupReader> reader_;   // of this result
  std::optional<uint64_t> of_result_;
  const Put* put_ = nullptr;  // during a call
  uint64_t offset_ = 0;       // of the next byte
  parquet::RowGroupHead head_;
  size_t column_ = 0;  // of the output, whose pages come
  bool to_doubles_ = false;
  parquet::Page page_;
  std::string page_bytes_;  // of it, where they are to become doubles

  // The row group that is being made.
  std::vector<Part> parts_;  // for each column of the output
  parquet::Codec codec_ = parquet::Codec::kNone;
  uint32_t group_rows_ = 0;   // 0: there is none
  uint64_t group_bytes_ = 0;  // as the workers made them
  bool alone_ = false;        // one result, which is too large to be held
};

}  // namespace parallelrun::output
