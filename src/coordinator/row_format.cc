#include "coordinator/row_format.h"

#include <utility>

namespace parallelrun {
namespace {

// Rows that end with a line feed each need nothing between them.
class LineFormat final : public RowFormat {
 public:
  explicit LineFormat(std::string header) : header_(std::move(header)) {}

  Status Begin(const Put& put) override { return header_.empty() ? Status() : put(header_); }
  Status Add(std::string_view rows, const Put& put) override { return put(rows); }
  Status End(const Put& /*put*/) override { return {}; }

 private:
  const std::string header_;
};

}  // namespace

std::unique_ptr<RowFormat> MakeRowFormat(OutputFormat format, std::string header) {
  // Each line of JSON names its own columns.
  if (format == OutputFormat::kJsonl) header.clear();
  return std::make_unique<LineFormat>(std::move(header));
}

}  // namespace parallelrun
