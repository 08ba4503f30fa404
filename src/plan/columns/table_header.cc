#include "plan/columns/table_header.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <set>

#include "base/escape.h"
#include "plan/columns/column_types.h"
#include "plan/columns/row_fields.h"
#include "plan/csv_splitter.h"

namespace parallelrun::plan {
namespace {

constexpr size_t kMostNamed = 3;

bool HasHighByte(std::string_view name) {
  return std::any_of(name.begin(), name.end(),
                     [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
}

std::string AsCharacters(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) {
      text += c;
    } else {
      text += static_cast<char>(0xC0 | byte >> 6);
      text += static_cast<char>(0x80 | (byte & 0x3F));
    }
  }
  return text;
}

std::string Listed(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size() && i < kMostNamed; ++i) {
    text += fmt::format("{}\"{}\"", i == 0 ? "" : ", ", Printable(names[i], kMostColumnName));
  }
  if (names.size() > kMostNamed) text += fmt::format(" and {} more", names.size() - kMostNamed);
  return text;
}

}  // namespace

RowSyntax RowSyntaxOf(const PlanInput& input) {
  const auto of = [](const std::string& mark) { return mark.empty() ? '\0' : mark.front(); };
  return {Delimiter(input.tabular.delimiter),
          input.tabular.quoted_newlines,
          of(input.tabular.comment),
          of(input.tabular.escape),
          kAnyField,
          false,
          QuoteOf(input)};
}

char QuoteOf(const PlanInput& input) {
  return input.tabular.quote == "None" ? '\0' : input.tabular.quote.front();
}

std::vector<std::string> NamesOf(std::string_view header, const PlanInput& input) {
  RowFields row(RowSyntaxOf(input));
  if (!row.Next(header, true)) return {};
  std::vector<std::string> names(row.fields().begin(), row.fields().end());
  if (!IsUtf8Encoding(input.tabular.encoding)) {
    std::transform(names.begin(), names.end(), names.begin(), AsCharacters);
  }
  return ColumnNames(std::move(names));
}

std::vector<std::string> NumberedNames(std::string_view row_text, const PlanInput& input) {
  RowFields row(RowSyntaxOf(input));
  if (!row.Next(row_text, true)) return {};
  std::vector<std::string> names;
  for (size_t i = 0; i < row.fields().size(); ++i) names.push_back(fmt::format("Column{}", i + 1));
  return names;
}

bool EndsWithDelimiter(std::string_view header, std::string_view first_row,
                       const PlanInput& input) {
  RowFields named(RowSyntaxOf(input));
  RowFields row(RowSyntaxOf(input));
  return named.Next(header, true) && row.Next(first_row, true) &&
         row.fields().size() == named.fields().size() + 1 && row.fields().back().empty() &&
         !named.fields().back().empty();
}

bool FirstRowIsStray(std::string_view header, std::string_view front, const PlanInput& input) {
  RowFields named(RowSyntaxOf(input));
  if (!named.Next(header, true)) return false;
  const size_t width = named.fields().size();
  const bool all = front.size() <= kNextRowsIn;
  RowFields row(RowSyntaxOf(input));
  size_t ended = 0;
  size_t plain = 0;
  for (size_t rows = 0; rows <= kNextRows; ++rows) {
    if (!row.Next(front.substr(0, kNextRowsIn + 1), all) || row.used() > kNextRowsIn) break;
    const size_t fields = row.fields().size();
    if (fields == width) ++plain;
    if (fields == width + 1 && row.fields().back().empty()) ++ended;
  }
  return plain > ended;
}

bool IsRawName(std::string_view name, const PlanInput& input) {
  return !IsUtf8Encoding(input.tabular.encoding) && HasHighByte(name);
}

std::string DifferenceOfColumns(const std::vector<std::string>& table,
                                const std::vector<std::string>& names) {
  if (names == table) return "";
  const std::set<std::string> expected(table.begin(), table.end());
  const std::set<std::string> there(names.begin(), names.end());
  std::vector<std::string> missing;
  std::vector<std::string> additional;
  std::set_difference(expected.begin(), expected.end(), there.begin(), there.end(),
                      std::back_inserter(missing));
  std::set_difference(there.begin(), there.end(), expected.begin(), expected.end(),
                      std::back_inserter(additional));
  std::string text;
  if (!missing.empty()) text = "has no column " + Listed(missing);
  if (!additional.empty()) {
    text += (text.empty() ? "has " : ", and has ") + std::string("the additional column ") +
            Listed(additional);
  }
  return text;
}

Error OtherColumns(const std::string& path, const std::string& difference) {
  return {Code::kInvalid,
          fmt::format("{} {}: the files of an input have the same columns, in any order. Correct "
                      "it, leave it out with exclude, set tabular.header to None if no file has a "
                      "header, or tabular.typing to PerMiniBatch",
                      Printable(path, 4096), difference)};
}

}  // namespace parallelrun::plan
