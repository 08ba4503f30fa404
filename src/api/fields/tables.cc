#include "api/fields/tables.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <vector>

#include "api/fields/explain.h"
#include "api/fields/walk.h"
#include "api/node.h"
#include "api/text.h"

namespace parallelrun::api::fields {
namespace {

struct TableRow {
  std::string path;
  std::string cells;
};

std::string InCell(std::string text) {
  for (size_t at = text.find('|'); at != std::string::npos; at = text.find('|', at + 2)) {
    text.insert(at, 1, '\\');
  }
  return text;
}

std::string DefaultCell(const Field& field) {
  const bool has_one = field.need != Need::kNone || field.write || !field.otherwise.empty();
  return has_one && !field.shape.fields ? InCell(DefaultText(field)) : "";
}

std::string_view ChangeWord(Change change) {
  switch (change) {
    case Change::kNever: return "";
    case Change::kAnyTime: return "any time";
    case Change::kWhileSuspended: return "suspended";
    case Change::kOnlyOn: return "only to true";
  }
  return "";
}

// What does not say it itself acts where the field of the spec does that it lies in.
std::string_view WhereWord(const Field& field, const Field& top) {
  const uint16_t acts = field.acts != 0 ? field.acts : top.acts;
  return acts == kOperator || field.only_in_cluster ? "cluster" : "local";
}

std::string WithoutSpec(const std::string& path) {
  return path.substr(std::string_view("spec.").size());
}

bool LiesIn(const std::string& path, const std::string& above) {
  if (!path.starts_with(above)) return false;
  const std::string_view rest = std::string_view(path).substr(above.size());
  return rest.empty() || rest[0] == '.' || rest[0] == '[';
}

// "inputs[].*.path" of "inputs[].files.path": what it is called whichever kind the input has; ""
// for what is not below a kind.
std::string OfAnyKind(const std::string& path) {
  constexpr std::string_view kInputs = "inputs[].";
  const size_t dot = path.starts_with(kInputs) ? path.find('.', kInputs.size()) : std::string::npos;
  return dot == std::string::npos ? "" : std::string(kInputs) + "*" + path.substr(dot);
}

void Add(std::vector<TableRow>& rows, TableRow row) {
  const std::string of_any = OfAnyKind(row.path);
  const auto alike = std::find_if(rows.begin(), rows.end(), [&](const TableRow& earlier) {
    return earlier.cells == row.cells &&
           (earlier.path == of_any || OfAnyKind(earlier.path) == of_any);
  });
  if (of_any.empty() || alike == rows.end()) {
    rows.push_back(std::move(row));
  } else {
    alike->path = of_any;
  }
}

std::vector<std::string> Names(std::string_view list) {
  std::vector<std::string> names;
  while (!list.empty()) {
    const size_t end = std::min(list.find(','), list.size());
    names.emplace_back(Trim(list.substr(0, end)));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return names;
}

}  // namespace

std::string AllRows() {
  std::string rows = "| field | type | default | may change | |\n|---|---|---|---|---|\n";
  EachField([&](const std::string& path, const Field& field, const Field& top) {
    rows += fmt::format("| `{}` | {} | {} | {} | {} |\n", WithoutSpec(path),
                        InCell(TypeText(field.shape)), DefaultCell(field), ChangeWord(top.change),
                        InCell(field.text));
  });
  return rows;
}

Result<std::string> RowsOf(std::string_view chosen) {
  std::vector<TableRow> rows;
  for (const std::string& name : Names(chosen)) {
    bool known = false;
    EachField([&](const std::string& path, const Field& field, const Field& top) {
      const std::string here = WithoutSpec(path);
      known = known || here == name;
      if (!LiesIn(here, name) || !field.write) return;
      Add(rows, {here, fmt::format("{} | {} | {} | {}", InCell(TypeText(field.shape)),
                                   DefaultCell(field), WhereWord(field, top), InCell(field.text))});
    });
    if (!known) return Error{Code::kNotFound, Quoted(name) + " is no field"};
  }
  std::string table = "| field | type | default | where | |\n|---|---|---|---|---|\n";
  for (const TableRow& row : rows) table += fmt::format("| `{}` | {} |\n", row.path, row.cells);
  return table;
}

}  // namespace parallelrun::api::fields
