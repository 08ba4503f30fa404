#include "output/parquet/output_columns.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

#include "base/escape.h"

namespace parallelrun::output {
namespace {

using parquet::Column;
using parquet::Type;

constexpr size_t kShownColumns = 20;

std::string Name(const std::string& name) { return Printable(name, kShownShort); }

// "text text, score double".
std::string Listed(const std::vector<Column>& columns) {
  std::string list;
  for (size_t i = 0; i < std::min(columns.size(), kShownColumns); ++i) {
    if (i > 0) list += ", ";
    list += Name(columns[i].name) + " " + parquet::TypeText(columns[i]);
  }
  if (columns.size() <= kShownColumns) return list;
  return fmt::format("{}, ... ({} in all)", list, columns.size());
}

bool Number(Type type) { return type == Type::kInt64 || type == Type::kDouble; }

// The type that holds the values of both.
std::optional<Column> Common(const Column& a, const Column& b) {
  if (b.type == Type::kNull || (a.type == b.type && a.list == b.list)) return a;
  if (a.type == Type::kNull) return Column{a.name, b.type, b.list};
  if (Number(a.type) && Number(b.type) && a.list == b.list) {
    return Column{a.name, Type::kDouble, a.list};
  }
  return std::nullopt;
}

}  // namespace

OutputColumns::OutputColumns(const std::vector<std::string>& named) : named_(!named.empty()) {
  for (const std::string& name : named) known_.push_back({{name}, 0});
}

Status OutputColumns::Add(job::BatchId id, const std::vector<Column>& columns) {
  if (columns == same_) return {};
  if (known_.empty() && !named_) {
    for (const Column& column : columns) known_.push_back({column, id});
  }
  for (size_t i = 0; i < columns.size(); ++i) {
    const Column& column = columns[i];
    Known* const known = Find(i, column.name);
    if (known == nullptr) {
      return Error{
          Code::kInvalid,
          fmt::format("has the column {}, which the columns of the output lack. It has {}. "
                      "The output has {}. Write output.columns with all that the output is "
                      "to have",
                      Name(column.name), Listed(columns), Listed(All()))};
    }
    std::optional<Column> common = Common(known->column, column);
    if (!common) {
      return Error{
          Code::kInvalid,
          fmt::format("has {} in the column {}, and mini-batch {} has {} there. It has {}. "
                      "Until then the output has {}. Have run() return one type in each "
                      "column, or None",
                      parquet::TypeText(column), Name(column.name), known->from,
                      parquet::TypeText(known->column), Listed(columns), Listed(All()))};
    }
    if (*common == known->column) continue;
    known->column = *std::move(common);
    known->from = id;
  }
  same_ = columns;
  return {};
}

std::vector<Column> OutputColumns::All() const {
  std::vector<Column> columns;
  for (const Known& known : known_) columns.push_back(known.column);
  return columns;
}

// Most mini-batches have their columns in one order.
OutputColumns::Known* OutputColumns::Find(size_t at, const std::string& name) {
  if (at < known_.size() && known_[at].column.name == name) return &known_[at];
  const auto found = std::find_if(known_.begin(), known_.end(), [&name](const Known& known) {
    return known.column.name == name;
  });
  return found == known_.end() ? nullptr : &*found;
}

}  // namespace parallelrun::output
