#include "output/row_format.h"

#include <utility>

#include "output/csv_join.h"
#include "output/parquet/parquet_join.h"

namespace parallelrun::output {
namespace {

// Rows that end with a line feed each need nothing between them.
class LineFormat final : public RowFormat {
 public:
  explicit LineFormat(std::string header) : header_(std::move(header)) {}

  Status Begin(const Put& put) override { return header_.empty() ? Status() : put(header_); }
  Status Add(std::string_view rows, bool /*first*/, const Put& put) override { return put(rows); }
  Status End(const Put& /*put*/) override { return {}; }

 private:
  const std::string header_;
};

}  // namespace

std::unique_ptr<RowFormat> MakeRowFormat(api::OutputFormat format, RowHeads heads) {
  switch (format) {
    case api::OutputFormat::kText: return std::make_unique<LineFormat>(std::move(heads.line));
    case api::OutputFormat::kJsonl: break;
    case api::OutputFormat::kCsv: return std::make_unique<CsvJoin>(std::move(heads.columns));
    case api::OutputFormat::kParquet: return std::make_unique<ParquetJoin>(std::move(heads.typed));
  }
  return std::make_unique<LineFormat>("");  // each line of JSON names its own columns
}

}  // namespace parallelrun::output
