#include "plan/columns/block_types.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <numeric>
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
      open_(columns) {
  seen_.columns.resize(columns);
  std::iota(open_.begin(), open_.end(), size_t{0});
  if (from != From::kWithinQuotes) return;
  text_ = format.quote;  // the one in front of the block
  --offset_;
}

void BlockReading::Feed(std::string_view bytes) {
  if (given_up()) return;
  text_.append(bytes);
  TakeRows(false);
}

void BlockReading::Finish() {
  if (!given_up() && place_.ends_file) TakeRows(true);
  text_.clear();
}

void BlockReading::TakeRows(bool last) {
  while (fields_.Next(text_, last)) TakeRow();
  offset_ += fields_.used();
  text_.erase(0, fields_.used());
  fields_.Forget();
  seen_.all = text_.size() <= kMostRow;
}

void BlockReading::TakeRow() {
  const std::vector<std::string_view>& texts = fields_.fields();
  const bool cut = std::exchange(cut_row_, false);
  const size_t width = seen_.columns.size() + (place_.delimiter_at_end ? 1 : 0);
  if (!cut && texts.size() > width) ++seen_.counts.wide;
  if (!cut && texts.size() < width) ++seen_.counts.few;
  if (from_ != From::kRow && (fields_.stray_quote() || (!cut && texts.size() != width))) {
    ++odd_rows_;
    return;
  }
  if (cut) return;
  ++seen_.counts.rows;
  if (wanted_.any && !seen_.bad_row) LookAtRow(width);
  LookAtFields(texts);
}

void BlockReading::LookAtFields(const std::vector<std::string_view>& texts) {
  const auto place = [&] { return PlaceOfRow(); };
  bool settled = false;
  for (const size_t i : open_) {
    // A field that a short row does not have is missing. Rows that are too long are refused when
    // they are read.
    const bool there = i < texts.size();
    const std::string_view text = there ? texts[i] : std::string_view();
    const FieldBits bit = there ? Classify(text, missing_) : field::kMissing;
    SeenColumn& column = seen_.columns[i];
    if ((column.bits() & bit) != 0) continue;  // as of most
    column.Add(bit, text, place);
    settled = settled || column.settled();
  }
  if (!settled) return;
  std::erase_if(open_, [&](size_t i) { return seen_.columns[i].settled(); });
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
    what = fmt::format("{} fields, and the table {} columns{}", texts.size(), seen_.columns.size(),
                       place_.delimiter_at_end ? " and a delimiter behind them" : "");
  } else if (wanted_.utf8 && !api::IsUtf8(row)) {
    what =
        "bytes that are not UTF-8 (write the encoding that the file is in, as encoding: latin-1)";
  }
  if (!what.empty()) seen_.bad_row = BadRow{PlaceOfRow(), std::move(what)};
}

bool IsCertain(const BlockReading& outside, const BlockReading& within) {
  return !outside.given_up() && outside.seen().counts.rows > 0 &&
         within.odd_rows() > outside.odd_rows();
}

const BlockReading* Choose(const BlockReading& outside, const BlockReading& within) {
  if (outside.given_up() != within.given_up()) return outside.given_up() ? &within : &outside;
  // A block without quotes is one open field, if it begins within some.
  const bool none = outside.seen().counts.rows == 0;
  if (none != (within.seen().counts.rows == 0)) return none ? &within : &outside;
  if (outside.odd_rows() != within.odd_rows()) {
    return outside.odd_rows() < within.odd_rows() ? &outside : &within;
  }
  const std::vector<SeenColumn>& columns = outside.seen().columns;
  const bool same =
      std::equal(columns.begin(), columns.end(), within.seen().columns.begin(),
                 [](const SeenColumn& a, const SeenColumn& b) { return a.bits() == b.bits(); });
  return same ? &outside : nullptr;
}

}  // namespace parallelrun::plan
