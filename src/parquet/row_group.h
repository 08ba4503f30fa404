// The rows of one result as a row group (docs/worker-protocol.md, "Rows of Parquet"): a head, a
// line of JSON, and then the columns, page behind page. Taken apart as the bytes come, in pieces
// that end anywhere, and nothing of them is trusted: what is wrong is an error, in memory that does
// not grow with them. What the values within a page are is not looked at. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "parquet/column.h"
#include "parquet/page.h"

namespace parallelrun::parquet {

struct RowGroupHead {
  uint32_t rows = 0;  // at least 1
  Codec codec = Codec::kNone;
  std::vector<Column> columns;  // at least one, and no two of one name
  std::vector<uint64_t> bytes;  // of each column's pages; none of kNull
};

// `line` without its end. kCorrupt: no worker has made it.
Result<RowGroupHead> ReadRowGroupHead(std::string_view line);

// The head of the rows that begin so. nullopt: the line has not ended yet. kCorrupt: as above.
Result<std::optional<RowGroupHead>> FindRowGroupHead(std::string_view rows);

// Takes what a row group is made of, in its order. What any of these refuses ends the reading.
class RowGroupTaker {
 public:
  virtual ~RowGroupTaker() = default;
  virtual Status TakeHead(const RowGroupHead& head) = 0;
  // The next column, by its place in the head; those of kNull have no pages and do not come.
  virtual Status TakeColumn(size_t column) = 0;
  virtual Status TakePage(const Page& page) = 0;
  // The next bytes of that page; they need not outlive the call.
  virtual Status TakeBytes(std::string_view bytes) = 0;
  virtual Status TakeEnd() = 0;
};

class RowGroupReader {
 public:
  // `taker` must outlive the reader.
  explicit RowGroupReader(RowGroupTaker& taker) : taker_(taker) {}

  // kCorrupt: no worker has made it; or what the taker says.
  Status Add(std::string_view bytes);
  // Nothing is missing.
  bool whole() const { return at_ == At::kEnd; }

 private:
  enum class At { kHead, kPageHeader, kPage, kEnd };

  Status AddToHead(std::string_view& bytes);
  Status AddToPageHeader(std::string_view& bytes);
  Status AddToPage(std::string_view& bytes);
  Status NextColumn();  // from `column_` on
  Status EndPage();

  RowGroupTaker& taker_;
  At at_ = At::kHead;
  RowGroupHead head_;
  std::string begun_;         // of the head's line or a page's header
  size_t column_ = 0;         // whose pages come
  uint64_t column_left_ = 0;  // bytes
  uint32_t page_left_ = 0;    // bytes
  uint64_t values_ = 0;       // of the column, so far
};

// Whether these bytes, one piece behind the other, are a row group of so many rows.
bool IsRowGroup(const std::vector<std::string_view>& pieces, uint32_t rows);

}  // namespace parallelrun::parquet
