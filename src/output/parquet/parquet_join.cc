#include "output/parquet/parquet_join.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/escape.h"
#include "output/parquet/compression.h"
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
  parts_.resize(all.size());
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
    of_result_.reset();
  }
  if (rows.empty()) return {};  // a result without rows adds nothing
  if (!reader_) reader_.emplace(static_cast<parquet::RowGroupTaker&>(*this));
  return reader_->Add(rows);
}

Status ParquetJoin::End(const Put& put) {
  put_ = &put;
  if (reader_ && !reader_->whole()) return Cut();
  if (const Status ended = EndGroup(); !ended.ok()) return ended;
  const Result<std::string> footer = footer_.End();
  return footer.ok() ? Write(*footer) : Status(footer.error());
}

// Of two row groups that follow each other, both together are more than one may share.
uint64_t ParquetJoin::Around(const RowsAhead& rows) const {
  const uint64_t full = rows.bytes / kMostSharedBytes + rows.rows / kMostSharedRows;
  return footer_.Estimate(std::min(rows.results, 2 * full + 1));
}

Status ParquetJoin::TakeHead(const parquet::RowGroupHead& head) {
  head_ = head;
  const uint64_t bytes = std::accumulate(head.bytes.begin(), head.bytes.end(), uint64_t{0});
  const bool shared = group_rows_ > 0 && head.codec == codec_ &&
                      group_bytes_ + bytes <= kMostSharedBytes &&
                      uint64_t{group_rows_} + head.rows <= kMostSharedRows;
  if (!shared) {
    if (const Status ended = EndGroup(); !ended.ok()) return ended;
    codec_ = head.codec;
    alone_ = bytes > kMostSharedBytes || head.rows > kMostSharedRows;
  }
  group_bytes_ += bytes;
  group_rows_ += head.rows;
  of_result_ = footer_.groups();
  for (Part& part : parts_) part.had = false;
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
  parts_[column_].had = true;
  return WriteMissing(column_);
}

Status ParquetJoin::TakePage(const parquet::Page& page) {
  if (!to_doubles_) return WritePageHeader(column_, page);
  if (page.bytes > kMostIntegerPage) {
    return Error{Code::kCorrupt, "a page of whole numbers is too long"};
  }
  page_ = page;
  page_bytes_.clear();
  return {};
}

Status ParquetJoin::TakeBytes(std::string_view bytes) {
  if (!to_doubles_) return WriteTo(column_, bytes);
  page_bytes_ += bytes;
  if (page_bytes_.size() < page_.bytes) return {};
  const Result<DoublePage> made =
      ToDoubles(page_, page_bytes_, head_.codec, footer_.columns()[column_]);
  if (!made.ok()) return made.error();
  if (const Status s = WritePageHeader(column_, made->page); !s.ok()) return s;
  return WriteTo(column_, made->bytes);
}

// A page of missing values waits for those of the next results: most that lack a column follow
// each other.
Status ParquetJoin::TakeEnd() {
  for (Part& part : parts_) {
    if (!part.had) part.missing += head_.rows;
  }
  return alone_ ? EndGroup() : Status();
}

Status ParquetJoin::EndGroup() {
  if (group_rows_ == 0) return {};
  std::vector<Chunk> chunks;
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (const Status s = WriteMissing(i); !s.ok()) return s;
    Part& part = parts_[i];
    part.chunk.codec = codec_;
    if (!alone_) {
      part.chunk.offset = offset_;
      if (const Status s = Write(part.bytes); !s.ok()) return s;
      part.bytes.clear();
    }
    chunks.push_back(std::exchange(part.chunk, Chunk()));
  }
  footer_.Add(group_rows_, chunks);
  group_rows_ = 0;
  group_bytes_ = 0;
  return {};
}

Status ParquetJoin::WriteMissing(size_t column) {
  const uint32_t values = std::exchange(parts_[column].missing, 0);
  if (values == 0) return {};
  std::string bytes = parquet::MissingValues(values, footer_.columns()[column].list);
  const auto decoded = static_cast<uint32_t>(bytes.size());
  if (codec_ == parquet::Codec::kZstd) {
    Result<std::string> stored = Compressed(bytes);
    if (!stored.ok()) return stored.error();
    bytes = std::move(*stored);
  }
  const parquet::Page page{values, decoded, static_cast<uint32_t>(bytes.size())};
  if (const Status s = WritePageHeader(column, page); !s.ok()) return s;
  return WriteTo(column, bytes);
}

Status ParquetJoin::WritePageHeader(size_t column, const parquet::Page& page) {
  const std::string header = parquet::PageHeader(page);
  Chunk& chunk = parts_[column].chunk;
  if (chunk.bytes == 0) chunk.offset = offset_;
  chunk.values += page.values;
  chunk.decoded += header.size() + page.decoded;
  return WriteTo(column, header);
}

Status ParquetJoin::WriteTo(size_t column, std::string_view bytes) {
  Part& part = parts_[column];
  part.chunk.bytes += bytes.size();
  if (alone_) return Write(bytes);
  part.bytes += bytes;
  return {};
}

Status ParquetJoin::Write(std::string_view bytes) {
  offset_ += bytes.size();
  return (*put_)(bytes);
}

}  // namespace parallelrun::output
