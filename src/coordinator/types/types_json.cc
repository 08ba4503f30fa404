#include "coordinator/types/types_json.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "api/enums.h"
#include "api/text.h"
#include "base/escape.h"
#include "coordinator/plan/source.h"

namespace parallelrun {
namespace {

using nlohmann::json;

constexpr size_t kMostName = 64;  // bytes of it for people

std::string Dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

const ColumnType* WrittenType(const TypedColumn& column, const PlanInput& input) {
  const auto found = input.tabular.dtypes.find(column.name);
  return found == input.tabular.dtypes.end() ? nullptr : &found->second;
}

std::optional<ColumnType> TypeOf(const json& word) {
  for (const auto& [known, type] : EnumWords<ColumnType>()) {
    if (word == known) return type;
  }
  return std::nullopt;
}

}  // namespace

std::string ToJson(const TypedTable& table) {
  json columns = json::array();
  for (const TypedColumn& column : table.columns) {
    json one = {{"name", column.name}, {"type", EnumWord(column.type.type)}};
    if (column.raw) one["raw"] = true;
    if (column.type.missing) one["missing"] = true;
    if (!column.why.empty()) one["why"] = column.why;
    columns.push_back(std::move(one));
  }
  json out = {{"columns", std::move(columns)}};
  if (table.all) out["all"] = true;
  if (!table.from.empty()) out["from"] = table.from;
  return Dump(out);
}

Result<TypedTable> TypesFromJson(std::string_view text) {
  const Error corrupt{Code::kCorrupt, "the stored types of columns are not what was written"};
  constexpr int kDepth = 4;
  const json value = json::parse(
      text, [](int depth, json::parse_event_t, json&) { return depth <= kDepth; }, false);
  if (!value.is_object() || !value.contains("columns")) return corrupt;
  TypedTable table;
  try {
    table.all = value.value("all", false);
    table.from = value.value("from", "");
    for (const json& one : value["columns"]) {
      const std::optional<ColumnType> type = TypeOf(one.at("type"));
      if (!type) return corrupt;
      table.columns.push_back({one.at("name").get<std::string>(),
                               one.value("raw", false),
                               {*type, one.value("missing", false), 0},
                               one.value("why", "")});
    }
  } catch (const json::exception&) {
    return corrupt;
  }
  return table;
}

Status CheckWrittenTypes(const TypedTable& table, const PlanInput& input) {
  std::vector<std::string> names;
  for (const TypedColumn& column : table.columns) names.push_back(column.name);
  for (const auto& [name, type] : input.tabular.dtypes) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    const std::string closest = ClosestName(name, names);
    constexpr size_t kMostNames = 1000;
    return Error{Code::kInvalid,
                 fmt::format("{}: tabular.dtypes names the column \"{}\", and no file has it{}; "
                             "the columns are: {}",
                             PlaceOf(input), Printable(name, kMostName),
                             closest.empty() ? "" : ": did you mean \"" + closest + "\"?",
                             Printable(fmt::format("{}", fmt::join(names, ", ")), kMostNames))};
  }
  return {};
}

std::string FormatMembers(const TypedTable& table, const PlanInput& input) {
  json columns = json::array();
  for (const TypedColumn& column : table.columns) {
    const ColumnType* written = WrittenType(column, input);
    const ColumnType type = written == nullptr ? column.type.type : *written;
    json one = {{"name", column.name}, {"type", EnumWord(type)}};
    if (column.raw) one["raw"] = true;
    // A boolean that somebody wrote may be missing: who knows it cannot say so otherwise.
    if (type == ColumnType::kBoolean && (written != nullptr || column.type.missing)) {
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
  if (input.tabular.bad_rows == BadRows::kSkip) members += R"(,"badRows":"Skip")";
  return members;
}

std::string ColumnsLine(const TypedTable& table, const PlanInput& input, size_t most) {
  std::string line = "columns";
  if (!table.from.empty()) line += " (from " + table.from + ")";
  size_t told = 0;
  for (const TypedColumn& column : table.columns) {
    if (told > 0 && line.size() > most) break;
    const ColumnType* written = WrittenType(column, input);
    std::string why = written != nullptr ? "as written" : column.why;
    if (written == nullptr && column.type.missing) why = "some missing";
    line += fmt::format("{}{} {}", told == 0 ? ": " : ", ", Printable(column.name, kMostName),
                        EnumWord(written == nullptr ? column.type.type : *written));
    if (!why.empty()) line += fmt::format(" ({})", why);
    ++told;
  }
  if (told < table.columns.size()) {
    line += fmt::format(" and {} more: see parallelrun types", table.columns.size() - told);
  }
  return line;
}

}  // namespace parallelrun
