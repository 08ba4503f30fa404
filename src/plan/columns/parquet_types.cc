#include "plan/columns/parquet_types.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/escape.h"
#include "base/json.h"

namespace parallelrun::plan {
namespace {

using Kind = ParquetType::Kind;

constexpr int64_t kExact = int64_t{1} << 53;  // up to here a double holds each whole number
constexpr int kMostDigits = 38;               // of a decimal of 128 bits
constexpr size_t kMostPath = 4096;
constexpr size_t kMostParquetName = 256;

bool Whole(const ParquetType& type) {
  return type.kind == Kind::kInteger || type.kind == Kind::kUnsigned;
}

bool Within(const std::optional<ParquetRange>& range, int64_t limit) {
  return range && range->min >= -limit && range->max <= limit;
}

// A double holds all values of the column.
bool FitsDouble(const ParquetColumn& column) {
  return column.type.kind == Kind::kFloat || column.type.bits < 64 || Within(column.range, kExact);
}

int64_t Factor(int from_unit, int to_unit) {
  int64_t factor = 1;
  for (int unit = from_unit; unit < to_unit; unit += 3) factor *= 1000;
  return factor;
}

std::optional<ParquetType> Units(const ParquetColumn& a, const ParquetColumn& b) {
  const ParquetColumn& coarse = a.type.unit < b.type.unit ? a : b;
  const ParquetType& fine = a.type.unit < b.type.unit ? b.type : a.type;
  if (a.type.utc != b.type.utc) return std::nullopt;
  if (fine.kind == Kind::kTime) return fine;  // a day fits any unit
  const int64_t most = std::numeric_limits<int64_t>::max() / Factor(coarse.type.unit, fine.unit);
  if (!Within(coarse.range, most)) return std::nullopt;
  return fine;
}

std::optional<ParquetType> Decimals(const ParquetType& a, const ParquetType& b) {
  ParquetType wide = a;
  wide.scale = std::max(a.scale, b.scale);
  wide.precision = std::max(a.precision - a.scale, b.precision - b.scale) + wide.scale;
  if (wide.precision > kMostDigits) return std::nullopt;
  return wide;
}

// The type to which both may be cast without loss.
std::optional<ParquetType> Common(const ParquetColumn& a, const ParquetColumn& b) {
  if (a.type == b.type || b.type.kind == Kind::kNull) return a.type;
  if (a.type.kind == Kind::kNull) return b.type;
  ParquetType wide;
  wide.bits = 64;
  if (Whole(a.type) && Whole(b.type)) {
    wide.kind = Kind::kInteger;
    const auto fits = [](const ParquetColumn& column) {
      return column.type.kind == Kind::kInteger || column.type.bits < 64 || column.range;
    };
    return fits(a) && fits(b) ? std::optional(wide) : std::nullopt;
  }
  const bool floats = a.type.kind == Kind::kFloat || b.type.kind == Kind::kFloat;
  const auto number = [](const ParquetType& type) {
    return Whole(type) || type.kind == Kind::kFloat;
  };
  if (floats && number(a.type) && number(b.type)) {
    wide.kind = Kind::kFloat;
    return FitsDouble(a) && FitsDouble(b) ? std::optional(wide) : std::nullopt;
  }
  if (a.type.kind != b.type.kind) return std::nullopt;
  if (a.type.kind == Kind::kTime || a.type.kind == Kind::kTimestamp) return Units(a, b);
  if (a.type.kind == Kind::kDecimal) return Decimals(a.type, b.type);
  return std::nullopt;
}

std::optional<ParquetRange> Both(const std::optional<ParquetRange>& a,
                                 const std::optional<ParquetRange>& b, int64_t factor_a,
                                 int64_t factor_b) {
  if (!a || !b) return std::nullopt;
  return ParquetRange{std::min(a->min * factor_a, b->min * factor_b),
                      std::max(a->max * factor_a, b->max * factor_b)};
}

std::string Name(const std::string& name) { return '"' + Printable(name, kMostParquetName) + '"'; }

// nullptr: each column has a name of its own.
const std::string* NamedTwice(const std::vector<ParquetColumn>& columns) {
  std::set<std::string_view> names;
  for (const ParquetColumn& column : columns) {
    if (!names.insert(column.name).second) return &column.name;
  }
  return nullptr;
}

Error Refusal(std::string_view path, const std::string& what) {
  return {Code::kInvalid, fmt::format("{}: {}; write the files alike, or name those that differ in "
                                      "inputs[].exclude",
                                      Printable(path, kMostPath), what)};
}

// What pandas is to make of the column in each row group; empty: what it does.
std::string DtypeOf(const ParquetColumn& column) {
  const ParquetType& type = column.type;
  switch (type.kind) {
    case Kind::kBoolean: return column.nulls ? "object" : "bool";
    case Kind::kFloat: return fmt::format("float{}", type.bits);
    case Kind::kInteger:
    case Kind::kUnsigned:
      if (!column.nulls) return TypeText(type);
      if (FitsDouble(column)) return "float64";
      return type.kind == Kind::kInteger || column.range ? "Int64" : "UInt64";
    default: return "";
  }
}

// The type of Arrow to cast to where files differ; empty where pandas makes the same of all.
std::string CastOf(const ParquetType& type) {
  const char* unit = type.unit == 3 ? "ms" : type.unit == 6 ? "us" : "ns";
  switch (type.kind) {
    case Kind::kTime: return fmt::format("time{}[{}]", type.unit == 3 ? 32 : 64, unit);
    case Kind::kTimestamp: return fmt::format("timestamp[{}{}]", unit, type.utc ? ", tz=UTC" : "");
    case Kind::kDecimal: return fmt::format("decimal128({}, {})", type.precision, type.scale);
    default: return "";
  }
}

}  // namespace

Status ParquetTypes::Add(std::string_view path, std::vector<ParquetColumn> columns) {
  if (const auto* const twice = NamedTwice(columns); twice != nullptr) {
    return Error{Code::kInvalid,
                 fmt::format("{}: it has two columns {}, and a column is known by its name; write "
                             "the file with other names, or write typing: PerMiniBatch, which "
                             "leaves both to pandas",
                             Printable(path, kMostPath), Name(*twice))};
  }
  if (columns_.empty()) {
    first_path_ = path;
    for (ParquetColumn& column : columns) {
      const bool untold = !std::exchange(column.untold, {}).empty();
      columns_.push_back({std::move(column), std::string(path), false, untold});
    }
    return {};
  }
  std::vector<bool> taken(columns_.size());
  for (size_t i = 0; i < columns.size(); ++i) {
    const auto named = [&](const Merged& m) { return m.column.name == columns[i].name; };
    // Most files have their columns in one order.
    auto at = i < columns_.size() && named(columns_[i])
                  ? columns_.begin() + static_cast<ptrdiff_t>(i)
                  : std::find_if(columns_.begin(), columns_.end(), named);
    if (at == columns_.end()) {
      return Refusal(path, fmt::format("it has a column {}, which {} has not",
                                       Name(columns[i].name), Printable(first_path_, kMostPath)));
    }
    taken[static_cast<size_t>(at - columns_.begin())] = true;
    const Status merged = Merge(path, columns[i], *at);
    if (!merged.ok()) return merged;
  }
  const auto missing = std::find(taken.begin(), taken.end(), false);
  if (missing == taken.end()) return {};
  const Merged& column = columns_[static_cast<size_t>(missing - taken.begin())];
  return Refusal(path, fmt::format("it lacks the column {}, which {} has", Name(column.column.name),
                                   Printable(first_path_, kMostPath)));
}

Status ParquetTypes::Merge(std::string_view path, const ParquetColumn& column, Merged& into) const {
  ParquetColumn& all = into.column;
  auto type = Common(all, column);
  if (!type) {
    return Refusal(path, fmt::format("its column {} is {}, that of {} is {}, and no type holds the "
                                     "values of both for certain",
                                     Name(column.name), TypeText(column.type),
                                     Printable(into.path, kMostPath), TypeText(all.type)));
  }
  const bool timestamps = type->kind == Kind::kTimestamp;
  const auto factor = [&](const ParquetType& from) {
    return timestamps && from.kind == Kind::kTimestamp ? Factor(from.unit, type->unit) : 1;
  };
  all.range = Both(all.range, column.range, factor(all.type), factor(column.type));
  into.cast = into.cast || !(all.type == *type) || !(column.type == *type);
  if (!(all.type == *type)) into.path = path;
  const bool none = column.type.kind == Kind::kNull || all.type.kind == Kind::kNull;
  const bool told = none || (all.nulls && !into.untold) || (column.nulls && column.untold.empty());
  into.untold = !told && (into.untold || !column.untold.empty());
  all.nulls = all.nulls || column.nulls || none;
  all.type = *std::move(type);
  return {};
}

std::string ParquetTypes::Json() const {
  nlohmann::json columns = nlohmann::json::array();
  for (const Merged& merged : columns_) {
    nlohmann::json column = {{"name", merged.column.name}};
    if (const auto dtype = DtypeOf(merged.column); !dtype.empty()) column["dtype"] = dtype;
    if (merged.cast) {
      if (const auto cast = CastOf(merged.column.type); !cast.empty()) column["cast"] = cast;
    }
    if (merged.untold) column["untold"] = true;
    columns.push_back(std::move(column));
  }
  const nlohmann::json types = {{"columns", std::move(columns)}};
  return types.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string ParquetFormatMembers(std::string_view json) {
  return std::string(json.size() < 2 ? "" : json.substr(1, json.size() - 2));
}

std::string ParquetNullsWarning(std::string_view json, size_t most) {
  const nlohmann::json types = ParseJson(json).value_or(nullptr);
  std::string names;
  size_t columns = 0;
  for (const nlohmann::json& column : lenient::List(types, "columns")) {
    if (!lenient::Boolean(column, "untold")) continue;
    if (columns++ > 0 && names.size() <= most) names += ", ";
    if (names.size() > most) continue;
    names += fmt::format("{} ({})", Printable(lenient::Text(column, "name"), kMostParquetName),
                         lenient::Text(column, "dtype"));
  }
  if (columns == 0) return "";
  return fmt::format(
      "; warning: the files do not say whether values are missing in {}{}, so {} read as if some "
      "were; to keep whole numbers and truth values, write the files again with null counts in "
      "their statistics, as pyarrow and DuckDB do",
      columns == 1 ? "the column " : "the columns ", names, columns == 1 ? "it is" : "they are");
}

std::string ParquetColumnsLine(std::string_view json, size_t most) {
  const nlohmann::json types = ParseJson(json).value_or(nullptr);
  const nlohmann::json& columns = lenient::List(types, "columns");
  std::string line;
  size_t told = 0;
  for (const nlohmann::json& column : columns) {
    if (line.size() > most) break;
    line += (told++ == 0 ? "columns: " : ", ") +
            Printable(lenient::Text(column, "name"), kMostParquetName);
    const std::string cast = lenient::Text(column, "cast");
    const std::string dtype = lenient::Text(column, "dtype");
    if (const std::string& type = dtype.empty() ? cast : dtype; !type.empty()) line += " " + type;
    if (!cast.empty()) line += " (files differ)";
  }
  if (told < columns.size()) line += fmt::format(" and {} more", columns.size() - told);
  return line;
}

}  // namespace parallelrun::plan
