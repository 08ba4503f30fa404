#include "plan/columns/block_types.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

#include "api/text.h"

namespace parallelrun::plan {
namespace {

// Of a row: what is longer is an open quote, or nothing that types could be guessed from.
constexpr size_t kMostRow = 8 * 1024 * 1024;

}  // namespace

BlockReading::BlockReading(RowSyntax format, const MissingWords& missing, size_t columns,
                           BlockPlace place, From from, BadRowsWanted wanted)
    : missing_(missing),
      place_(std::move(place)),
      from_(from),
      wanted_(wanted),
      fields_(format),
      offset_(place_.offset),
      cut_row_(from != From::kRow),
      columns_(columns) {
  if (from != From::kWithinQuotes) return;
  text_ = format.quote;  // the one in front of the block
  --offset_;
}

void BlockReading::Feed(std::string_view bytes) {
  if (given_up_) return;
  text_.append(bytes);
  TakeRows(false);
}

void BlockReading::Finish() {
  if (!given_up_ && place_.ends_file) TakeRows(true);
  text_.clear();
}

void BlockReading::TakeRows(bool last) {
  while (fields_.Next(text_, last)) TakeRow();
  offset_ += fields_.used();
  text_.erase(0, fields_.used());
  fields_.Forget();
  given_up_ = text_.size() > kMostRow;
}

void BlockReading::TakeRow() {
  const std::vector<std::string_view>& texts = fields_.fields();
  const bool cut = std::exchange(cut_row_, false);
  const size_t width = columns_.size() + (place_.delimiter_at_end ? 1 : 0);
  if (!cut && texts.size() > width) ++wide_rows_;
  if (!cut && texts.size() < width) ++short_rows_;
  if (from_ != From::kRow && (fields_.stray_quote() || (!cut && texts.size() != width))) {
    ++odd_rows_;
    return;
  }
  if (cut) return;
  ++rows_;
  if (wanted_.any && !bad_row_) LookAtRow(width);
  const auto place = [&] { return PlaceOfRow(); };
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i].settled()) continue;
    // A field that a short row does not have is missing. Rows that are too long are refused when
    // they are read.
    const std::string_view text = i < texts.size() ? texts[i] : std::string_view();
    const FieldBits bit = i < texts.size() ? Classify(text, missing_) : field::kMissing;
    columns_[i].Add(bit, text, place);
  }
}

FieldPlace BlockReading::PlaceOfRow() const {
  return {place_.file, place_.line == 0 ? 0 : place_.line + fields_.lines(),
          offset_ + fields_.begin()};
}

// As the worker does (row_shape.py, typed_table.py).
void BlockReading::LookAtRow(size_t width) {
  const std::string_view row =
      std::string_view(text_).substr(fields_.begin(), fields_.used() - fields_.begin());
  const std::vector<std::string_view>& texts = fields_.fields();
  std::string what;
  if (row.find('\0') != std::string_view::npos) {
    what = "a NUL byte, which is no text";
  } else if (texts.size() > width ||
             (place_.delimiter_at_end && (texts.size() != width || !texts.back().empty()))) {
    what = fmt::format("{} fields, and the table {} columns{}", texts.size(), columns_.size(),
                       place_.delimiter_at_end ? " and a delimiter behind them" : "");
  } else if (wanted_.utf8 && !api::IsUtf8(row)) {
    what =
        "bytes that are not UTF-8 (write the encoding that the file is in, as encoding: latin-1)";
  }
  if (!what.empty()) bad_row_ = BadRow{PlaceOfRow(), std::move(what)};
}

bool IsCertain(const BlockReading& outside, const BlockReading& within) {
  return !outside.given_up() && outside.rows() > 0 && within.odd_rows() > outside.odd_rows();
}

const BlockReading* Choose(const BlockReading& outside, const BlockReading& within) {
  if (outside.given_up() != within.given_up()) return outside.given_up() ? &within : &outside;
  // A block without quotes is one open field, if it begins within some.
  if ((outside.rows() == 0) != (within.rows() == 0)) {
    return outside.rows() == 0 ? &within : &outside;
  }
  if (outside.odd_rows() != within.odd_rows()) {
    return outside.odd_rows() < within.odd_rows() ? &outside : &within;
  }
  const bool same =
      std::equal(outside.columns().begin(), outside.columns().end(), within.columns().begin(),
                 [](const SeenColumn& a, const SeenColumn& b) { return a.bits() == b.bits(); });
  return same ? &outside : nullptr;
}

}  // namespace parallelrun::plan
