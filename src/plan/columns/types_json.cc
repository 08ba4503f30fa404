#include "plan/columns/types_json.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "api/enums.h"
#include "api/text.h"
#include "base/escape.h"
#include "base/json.h"
#include "plan/source.h"

namespace parallelrun::plan {
namespace {

using nlohmann::json;

std::string Dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

const api::ColumnType* WrittenType(const TypedColumn& column, const PlanInput& input) {
  const auto found = input.tabular.dtypes.find(column.name);
  return found == input.tabular.dtypes.end() ? nullptr : &found->second;
}

std::optional<api::ColumnType> TypeOf(const std::string& word) {
  for (const auto& [known, type] : api::EnumWords<api::ColumnType>()) {
    if (word == known) return type;
  }
  return std::nullopt;
}

}  // namespace

std::string ToJson(const TypedTable& table) {
  json columns = json::array();
  for (const TypedColumn& column : table.columns) {
    json one = {{"name", column.name}, {"type", api::EnumWord(column.type.type)}};
    if (column.raw) one["raw"] = true;
    if (column.type.missing) one["missing"] = true;
    if (!column.why.empty()) one["why"] = column.why;
    columns.push_back(std::move(one));
  }
  json out = {{"columns", std::move(columns)}};
  if (table.all) out["all"] = true;
  if (table.no_rows) out["noRows"] = true;
  if (!table.from.empty()) out["from"] = table.from;
  if (!table.dialect.empty()) out["dialect"] = table.dialect;
  if (!table.delimiter_at_end.empty()) out["delimiterAtEnd"] = table.delimiter_at_end;
  return Dump(out);
}

Result<TypedTable> TypesFromJson(std::string_view text) {
  const Error corrupt{Code::kCorrupt, "the stored types of columns are not what was written"};
  constexpr int kDepth = 4;
  const json value = ParseJson(text, kDepth).value_or(nullptr);
  Members in(value, "types");
  TypedTable table;
  table.all = in.BooleanOr("all", false);
  table.no_rows = in.BooleanOr("noRows", false);
  table.from = in.TextOr("from", "");
  table.dialect = in.TextOr("dialect", "");
  table.delimiter_at_end = in.TextOr("delimiterAtEnd", "");
  for (const json& one : in.Value("columns", json::value_t::array)) {
    Members of(one, "a column");
    const std::optional<api::ColumnType> type = TypeOf(of.Text("type"));
    TypedColumn& column = table.columns.emplace_back();
    column.name = of.Text("name");
    column.raw = of.BooleanOr("raw", false);
    column.why = of.TextOr("why", "");
    column.type = {type.value_or(api::ColumnType{}), of.BooleanOr("missing", false), 0};
    if (!type || !of.status().ok()) return corrupt;
  }
  if (!in.status().ok()) return corrupt;
  return table;
}

Status CheckWrittenTypes(const TypedTable& table, const PlanInput& input) {
  std::vector<std::string> names;
  for (const TypedColumn& column : table.columns) names.push_back(column.name);
  for (const auto& [name, type] : input.tabular.dtypes) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    const std::string closest = api::ClosestName(name, names);
    constexpr size_t kMostNames = 1000;
    return Error{Code::kInvalid,
                 fmt::format("{}: tabular.dtypes names the column \"{}\", and no file has it{}; "
                             "the columns are: {}",
                             PlaceOf(input), Printable(name, kMostColumnName),
                             closest.empty() ? "" : ": did you mean \"" + closest + "\"?",
                             Printable(fmt::format("{}", fmt::join(names, ", ")), kMostNames))};
  }
  return {};
}

std::string FormatMembers(const TypedTable& table, const PlanInput& input) {
  json columns = json::array();
  for (const TypedColumn& column : table.columns) {
    const api::ColumnType* written = WrittenType(column, input);
    const api::ColumnType type = written == nullptr ? column.type.type : *written;
    json one = {{"name", column.name}, {"type", api::EnumWord(type)}};
    if (column.raw) one["raw"] = true;
    // A boolean that somebody wrote may be missing: who knows it cannot say so otherwise.
    if (type == api::ColumnType::kBoolean && (written != nullptr || column.type.missing)) {
      one["missing"] = true;
    }
    if (written != nullptr) one["written"] = true;
    columns.push_back(std::move(one));
  }
  std::string members = "\"columns\":" + Dump(columns);
  if (table.all) members += ",\"all\":true";
  if (!input.tabular.na_values.empty() || !input.tabular.keep_default_na) {
    const MissingWords words(input.tabular.na_values, input.tabular.keep_default_na);
    members += ",\"na\":" + Dump(words.given());
  }
  if (!input.tabular.comment.empty()) members += ",\"comment\":" + Dump(input.tabular.comment);
  if (!input.tabular.escape.empty()) members += ",\"escape\":" + Dump(input.tabular.escape);
  if (!table.dialect.empty()) members += ",\"dialect\":" + Dump(table.dialect);
  if (input.tabular.bad_rows == api::BadRows::kSkip) members += R"(,"badRows":"Skip")";
  return members;
}

std::string AskAboutHeader(const TypedTable& table, const PlanInput& input) {
  if (!table.dialect.empty()) return table.dialect;
  if (input.tabular.header == api::HeaderMode::kNone) return "";
  const MissingWords none({}, false);
  size_t numbers = 0;
  for (const TypedColumn& column : table.columns) {
    const api::ColumnType type = column.type.type;
    if (type != api::ColumnType::kInteger && type != api::ColumnType::kNumber) continue;
    if ((Classify(column.name, none) & (field::kWord | field::kBoolean)) != 0) return "";
    ++numbers;
  }
  if (numbers == 0) return "";
  return "the first row gives them their names: if it is data, set tabular.header to None";
}

std::string ColumnsLine(const TypedTable& table, const PlanInput& input, size_t most) {
  std::string line = "columns";
  if (!table.from.empty()) line += " (from " + table.from + ")";
  size_t told = 0;
  for (const TypedColumn& column : table.columns) {
    if (told > 0 && line.size() > most) break;
    const api::ColumnType* written = WrittenType(column, input);
    std::string why = written != nullptr ? "as written" : column.why;
    if (written == nullptr && column.type.missing) why = "some missing";
    line += (told == 0 ? ": " : ", ") + Printable(column.name, kMostColumnName);
    if (written != nullptr || !table.no_rows) {
      line += fmt::format(" {}", api::EnumWord(written == nullptr ? column.type.type : *written));
    }
    if (!why.empty()) line += fmt::format(" ({})", why);
    ++told;
  }
  if (told < table.columns.size()) {
    line += fmt::format(" and {} more: see parallelrun types", table.columns.size() - told);
  }
  if (table.no_rows) line += "; there is no row";
  if (!table.delimiter_at_end.empty()) {
    line += fmt::format("; the rows of {} end with a delimiter, behind which there is no column",
                        Printable(table.delimiter_at_end, 1024));
  }
  if (const std::string asks = AskAboutHeader(table, input); !asks.empty()) line += "; " + asks;
  return line;
}

}  // namespace parallelrun::plan
