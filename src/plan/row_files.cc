#include "plan/row_files.h"

#include <spdlog/fmt/fmt.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "api/text.h"
#include "base/escape.h"
#include "base/json.h"
#include "plan/columns/table_header.h"
#include "plan/csv_splitter.h"
#include "plan/line_splitter.h"
#include "plan/listing.h"
#include "plan/parquet_splitter.h"
#include "plan/source.h"

namespace parallelrun::plan {
namespace {

char CharOf(const std::string& mark) { return mark.empty() ? '\0' : mark.front(); }

}  // namespace

CsvFormat FormatOf(const PlanInput& input) {
  const api::TabularOptions& table = input.tabular;
  return {.delimiter = table.delimiter,
          .encoding = table.encoding,
          .quoted_newlines = table.quoted_newlines,
          .comment = CharOf(table.comment),
          .escape = CharOf(table.escape),
          .skip_rows = static_cast<uint32_t>(table.skip_rows),
          .max_field_size = table.max_field_size,
          .fronts = table.typing == api::Typing::kOnce,
          .quote = QuoteOf(input),
          .stop = input.stop};
}

namespace {

std::string_view WithoutLineEnd(std::string_view row) {
  while (!row.empty() && (row.back() == '\n' || row.back() == '\r')) row.remove_suffix(1);
  return row;
}

template <typename Splitter>
Result<RowFiles::Opened> AsOpened(Result<std::unique_ptr<Splitter>> splitter) {
  if (!splitter.ok()) return splitter.error();
  return RowFiles::Opened{std::move(*splitter), "", 0};
}

}  // namespace

Status RowFiles::Prepare(std::string header) {
  if (input_.kind != PlanKind::kDelimited) return {};
  const Status format = CheckCsvFormat(FormatOf(input_));
  if (!format.ok()) return format.error().With(PlaceOf(input_));
  if (input_.tabular.header != api::HeaderMode::kFirstFile) return {};
  first_header_ = std::move(header);
  return ReadFirstHeader();
}

Status RowFiles::ReadFirstHeader() {
  // The first file's header stands for all, also where its rows are those of another input.
  PlanInput own = input_;
  own.before.clear();
  Listing files(own, store_);
  while (first_header_.empty()) {
    const auto next = files.Next();
    if (!next.ok()) return next.error();
    if (!*next) return {};
    first_name_.assign((*next)->name);
    auto file = CsvSplitter::Open(store_, first_name_, FormatOf(input_));
    if (!file.ok()) return file.error().With(PlaceOf(input_));
    auto row = (*file)->TakeHeader();
    if (!row.ok()) return row.error().With(PlaceOf(input_));
    first_header_ = std::move(*row);
  }
  return {};
}

Result<RowFiles::Opened> RowFiles::Open(const std::string& name) const {
  // Groups may be of any number of files, and of Parquet only the ends are read.
  if (input_.stop.stop_requested()) {
    return Error{Code::kUnavailable,
                 fmt::format("{}: {} is not read: the job ended", PlaceOf(input_),
                             Printable(store_.Location(name), 4096))};
  }
  auto opened = input_.kind == PlanKind::kJsonLines
                    ? AsOpened(LineSplitter::Open(store_, name, input_.stop))
                : input_.kind == PlanKind::kParquet ? AsOpened(ParquetSplitter::Open(store_, name))
                                                    : OpenDelimited(name);
  if (opened.ok()) return opened;
  if (opened.error().code == Code::kNotFound) return Opened();
  return opened.error().With(PlaceOf(input_));
}

Result<RowFiles::Opened> RowFiles::OpenDelimited(const std::string& name) const {
  auto opened = CsvSplitter::Open(store_, name, FormatOf(input_));
  if (!opened.ok()) return opened.error();
  std::string header;
  if (input_.tabular.header != api::HeaderMode::kNone) {
    auto row = (*opened)->TakeHeader();
    if (!row.ok()) return row.error();
    if (input_.tabular.header == api::HeaderMode::kAllFiles || name == first_name_) {
      header = std::move(*row);
    } else {
      // One header for all, to the byte: a restart knows that of the last chunk only.
      header = first_header_;
      if (WithoutLineEnd(*row) != WithoutLineEnd(header)) (*opened)->Seek(0);
    }
  }
  if (const Status same = CheckColumns(store_.Location(name), header); !same.ok())
    return same.error();
  if (header.find('\0') != std::string::npos) {
    return Error{Code::kInvalid, Printable(store_.Location(name), 4096) +
                                     ": its header holds a NUL byte, which is no text: remove it, "
                                     "or leave the file out with pattern or exclude"};
  }
  if (IsUtf8Encoding(input_.tabular.encoding) && !api::IsUtf8(header)) {
    return Error{Code::kInvalid,
                 Printable(store_.Location(name), 4096) +
                     ": its header is not UTF-8: write the encoding that the file is in, as "
                     "encoding: latin-1 (or cp1252, gbk), or convert it (iconv)"};
  }
  bool delimiter_at_end = false;
  if (!header.empty()) {
    const auto row = (*opened)->PeekRow();
    if (!row.ok()) return row.error();
    delimiter_at_end = EndsWithDelimiter(header, *row, input_);
  }
  if (delimiter_at_end) {
    const auto front = (*opened)->PeekText(kNextRowsIn + 1);
    if (!front.ok()) return front.error();
    delimiter_at_end = !FirstRowIsStray(header, *front, input_);
  }
  const uint64_t begin = (*opened)->offset();
  return Opened{std::move(*opened), std::move(header), begin, delimiter_at_end};
}

Status RowFiles::CheckColumns(const std::string& path, const std::string& header) const {
  if (input_.columns.empty() || input_.tabular.header != api::HeaderMode::kAllFiles ||
      header.empty())
    return {};
  const std::string other = DifferenceOfColumns(input_.columns, NamesOf(header, input_));
  return other.empty() ? Status() : OtherColumns(path, other);
}

uint64_t RowFiles::Opened::SliceSize(uint64_t wanted) const {
  return splitter->compressed() ? std::numeric_limits<uint64_t>::max() : wanted;
}

bool IsCompressed(std::string_view format) {
  return lenient::Boolean(ParseJson(format).value_or(nullptr), "compressed");
}

// Where each mini-batch has types of its own, nobody asks.
bool RowFiles::TellMayLose() const {
  return input_.kind == PlanKind::kDelimited && FormatOf(input_).fronts;
}

std::string RowFiles::Format(bool compressed, RowEnd end) const {
  if (input_.kind == PlanKind::kParquet) return R"({"format":"parquet"})";
  nlohmann::json format = {{"encoding", "utf-8"}};
  if (input_.kind == PlanKind::kDelimited) {
    format = {{"delimiter", input_.tabular.delimiter}, {"encoding", input_.tabular.encoding}};
  }
  if (input_.kind == PlanKind::kDelimited && QuoteOf(input_) != '"') {
    format["quote"] = QuoteOf(input_) == 0 ? "" : input_.tabular.quote;
  }
  if (compressed) format["compressed"] = true;
  if (input_.kind == PlanKind::kDelimited && end == RowEnd::kDelimiter) {
    format["delimiterAtEnd"] = true;
  }
  if (input_.kind == PlanKind::kDelimited && end == RowEnd::kAsFirstRows) {
    format["delimiterAtEnd"] = "FirstRows";
  }
  return format.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace parallelrun::plan
