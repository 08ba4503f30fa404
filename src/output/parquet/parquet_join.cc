#include "output/parquet/parquet_join.h"

#include <spdlog/fmt/fmt.h>

#include <utility>

#include "base/escape.h"
#include "output/parquet/double_page.h"

namespace parallelrun::output {
namespace {

using parquet::Chunk;
using parquet::Column;
using parquet::Type;

Error Cut() { return {Code::kCorrupt, "the rows of a mini-batch end within a row group"}; }

}  // namespace

ParquetJoin::ParquetJoin(std::vector<Column> columns) : footer_(std::move(columns)) {
  const std::vector<Column>& all = footer_.columns();
  for (size_t i = 0; i < all.size(); ++i) places_.emplace(all[i].name, i);
}

Status ParquetJoin::Begin(const Put& put) {
  put_ = &put;
  return Write(parquet::kMagic);
}

Status ParquetJoin::Add(std::string_view rows, bool first, const Put& put) {
  put_ = &put;
  if (first) {
    if (reader_ && !reader_->whole()) return Cut();
    reader_.reset();
  }
  if (rows.empty()) return {};  // a result without rows adds nothing
  if (!reader_) reader_.emplace(static_cast<parquet::RowGroupTaker&>(*this));
  return reader_->Add(rows);
}

Status ParquetJoin::End(const Put& put) {
  put_ = &put;
  if (reader_ && !reader_->whole()) return Cut();
  const Result<std::string> footer = footer_.End();
  return footer.ok() ? Write(*footer) : Status(footer.error());
}

Status ParquetJoin::TakeHead(const parquet::RowGroupHead& head) {
  head_ = head;
  chunks_.assign(footer_.columns().size(), Chunk());
  return {};
}

Status ParquetJoin::TakeColumn(size_t column) {
  const Column& from = head_.columns[column];
  const auto place = places_.find(from.name);
  if (place == places_.end()) {
    return Error{Code::kInvalid, fmt::format("has the column {}, which the output lacks",
                                             Printable(from.name, kShownShort))};
  }
  column_ = place->second;
  const Column& to = footer_.columns()[column_];
  to_doubles_ = from.type == Type::kInt64 && to.type == Type::kDouble;
  if (from.list != to.list || (from.type != to.type && !to_doubles_)) {
    return Error{Code::kInvalid,
                 fmt::format("has {} in the column {}, and the output {}", parquet::TypeText(from),
                             Printable(from.name, kShownShort), parquet::TypeText(to))};
  }
  chunks_[column_].codec = head_.codec;
  chunks_[column_].offset = offset_;
  return {};
}

Status ParquetJoin::TakePage(const parquet::Page& page) {
  if (!to_doubles_) return WritePageHeader(page);
  if (page.bytes > kMostIntegerPage) {
    return Error{Code::kCorrupt, "a page of whole numbers is too long"};
  }
  page_ = page;
  page_bytes_.clear();
  return {};
}

Status ParquetJoin::TakeBytes(std::string_view bytes) {
  if (!to_doubles_) {
    chunks_[column_].bytes += bytes.size();
    return Write(bytes);
  }
  page_bytes_ += bytes;
  if (page_bytes_.size() < page_.bytes) return {};
  const Result<DoublePage> made =
      ToDoubles(page_, page_bytes_, head_.codec, footer_.columns()[column_]);
  if (!made.ok()) return made.error();
  if (const Status written = WritePageHeader(made->page); !written.ok()) return written;
  chunks_[column_].bytes += made->bytes.size();
  return Write(made->bytes);
}

Status ParquetJoin::TakeEnd() {
  for (size_t i = 0; i < chunks_.size(); ++i) {
    if (chunks_[i].bytes > 0) continue;
    if (const Status written = WriteMissing(i); !written.ok()) return written;
  }
  footer_.Add(head_.rows, chunks_);
  return {};
}

Status ParquetJoin::WriteMissing(size_t column) {
  const std::string bytes = parquet::MissingValues(head_.rows, footer_.columns()[column].list);
  const auto size = static_cast<uint32_t>(bytes.size());
  column_ = column;
  chunks_[column].offset = offset_;
  if (const Status s = WritePageHeader({head_.rows, size, size}); !s.ok()) return s;
  chunks_[column].bytes += size;
  return Write(bytes);
}

Status ParquetJoin::WritePageHeader(const parquet::Page& page) {
  const std::string header = parquet::PageHeader(page);
  Chunk& chunk = chunks_[column_];
  chunk.values += page.values;
  chunk.bytes += header.size();
  chunk.decoded += header.size() + page.decoded;
  return Write(header);
}

Status ParquetJoin::Write(std::string_view bytes) {
  offset_ += bytes.size();
  return (*put_)(bytes);
}

}  // namespace parallelrun::output
