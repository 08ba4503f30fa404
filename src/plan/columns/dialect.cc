#include "plan/columns/dialect.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "api/text.h"
#include "base/escape.h"
#include "plan/columns/row_fields.h"
#include "plan/columns/table_header.h"

namespace parallelrun::plan {
namespace {

constexpr size_t kMostRows = 20;
constexpr uint64_t kShare = 10;  // a tenth of the rows

using DialectRows = std::vector<std::vector<std::string>>;

DialectRows RowsBy(std::string_view delimiter, std::string_view front, const PlanInput& input) {
  RowSyntax syntax = RowSyntaxOf(input);
  syntax.delimiter = Delimiter(delimiter);
  RowFields fields(syntax);
  DialectRows rows;
  const bool all = front.size() < kDialectFront;
  while (rows.size() < kMostRows && fields.Next(front.substr(0, kDialectFront), all)) {
    rows.emplace_back(fields.fields().begin(), fields.fields().end());
  }
  return rows;
}

// Whether they are a table of several columns.
bool FitTogether(const DialectRows& rows) {
  const size_t width = rows.empty() ? 0 : rows.front().size();
  return rows.size() > 1 && width > 1 &&
         std::all_of(rows.begin() + 1, rows.end(), [&](const std::vector<std::string>& row) {
           return row.size() == width || (row.size() == width + 1 && row.back().empty());
         });
}

bool IsDecimalDigit(char c) { return c >= '0' && c <= '9'; }

// "1.234,5"
bool HasDecimalComma(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  const size_t comma = text.find(',');
  if (comma == std::string_view::npos || comma == 0 || comma + 1 == text.size()) return false;
  return IsDecimalDigit(text.front()) &&
         std::all_of(text.begin(), text.begin() + static_cast<ptrdiff_t>(comma),
                     [](char c) { return IsDecimalDigit(c) || c == '.'; }) &&
         std::all_of(text.begin() + static_cast<ptrdiff_t>(comma) + 1, text.end(), IsDecimalDigit);
}

std::string AboutDecimalCommas(const DialectRows& rows) {
  for (size_t i = 1; i < rows.size(); ++i) {
    for (const std::string& field : rows[i]) {
      if (!HasDecimalComma(field)) continue;
      return fmt::format(
          "\"{}\" has a decimal comma: such columns are text, turn them into numbers in "
          "run()",
          Printable(field, 32));
    }
  }
  return "";
}

// "2 of the 30 rows read have more fields than the header, and 1 has fewer"
std::string AboutWidths(const RowCounts& counts, bool header) {
  const auto have = [](uint64_t rows) { return rows == 1 ? "has" : "have"; };
  const bool wide = counts.wide > 0;
  const uint64_t odd = wide ? counts.wide : counts.few;
  std::string text = counts.rows == 1 ? "the only row read"
                                      : fmt::format("{} of the {} rows read", odd, counts.rows);
  text += fmt::format(" {} {} fields than the {}", have(odd), wide ? "more" : "fewer",
                      header ? "header" : "first row");
  if (wide && counts.few > 0)
    text += fmt::format(", and {} {} fewer", counts.few, have(counts.few));
  return text;
}

// A line that spreadsheets write in front of the header: "sep=;".
std::optional<std::string_view> NamedDelimiter(std::string_view front) {
  std::string_view line = front.substr(0, front.find_first_of("\r\n"));
  if (line.size() > 2 && line.front() == '"' && line.back() == '"') {
    line = line.substr(1, line.size() - 2);
  }
  if (!line.starts_with("sep=") && !line.starts_with("SEP=")) return std::nullopt;
  line.remove_prefix(4);
  return api::IsDelimiter(line) ? std::optional(line) : std::nullopt;
}

// As a job file has it.
std::string Quoted(std::string_view delimiter) { return "\"" + Printable(delimiter, 64) + "\""; }

// Whether `longer` begins with the delimiter `shorter`, which the header holds nowhere else: "a||b"
// is a table of two columns.
bool HoldsEach(std::string_view longer, std::string_view shorter,
               const std::vector<std::string>& header) {
  return !shorter.empty() && longer.size() > shorter.size() && longer.starts_with(shorter) &&
         std::none_of(header.begin(), header.end(), [&](const std::string& name) {
           return name.find(shorter) != std::string::npos;
         });
}

// The delimiter that makes the best table of it; where none does, and `one_column`, one that the
// header holds. Empty: none.
std::string_view OtherDelimiter(std::string_view front, bool one_column, const PlanInput& input) {
  constexpr std::array<std::string_view, 7> kOften = {";", "\t", "|", ",", "||", "::", ", "};
  std::string_view found;
  size_t columns = 0;
  for (const bool fit : {true, false}) {
    if (!fit && (!found.empty() || !one_column)) break;
    for (const std::string_view other : kOften) {
      if (input.tabular.delimiter == other) continue;
      const DialectRows rows = RowsBy(other, front, input);
      if (rows.empty() || rows.front().size() < 2 || (fit && !FitTogether(rows))) continue;
      if (rows.front().size() <= columns && !HoldsEach(other, found, rows.front())) continue;
      found = other;
      columns = rows.front().size();
    }
  }
  return found;
}

}  // namespace

std::string DialectAdvice(std::string_view front, const RowCounts& counts, const PlanInput& input) {
  if (const std::optional<std::string_view> named = NamedDelimiter(front)) {
    return fmt::format(
        "the first line names {} as the delimiter: write delimiter: {} and skipRows: "
        "{}",
        Quoted(*named), Quoted(*named), input.tabular.skip_rows + 1);
  }
  const DialectRows rows = RowsBy(input.tabular.delimiter, front, input);
  if (rows.empty()) return "";
  const bool header = input.tabular.header != api::HeaderMode::kNone;
  const bool one_column = header && rows.front().size() == 1;
  const uint64_t odd = counts.wide + counts.few;
  const bool many_odd = odd * kShare > counts.rows;
  const std::string_view other =
      one_column || many_odd ? OtherDelimiter(front, one_column, input) : std::string_view();
  std::string advice;
  if (!other.empty()) {
    advice = fmt::format("the delimiter seems to be {}: write delimiter: {}", Quoted(other),
                         Quoted(other));
  } else if (many_odd) {
    advice = AboutWidths(counts, header);
  }
  const std::string_view delimiter = other.empty() ? input.tabular.delimiter : other;
  if (delimiter == ",") return advice;
  const std::string commas = AboutDecimalCommas(RowsBy(delimiter, front, input));
  return advice + (advice.empty() || commas.empty() ? "" : "; ") + commas;
}

}  // namespace parallelrun::plan
