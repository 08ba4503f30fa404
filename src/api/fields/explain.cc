#include "api/fields/explain.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "api/fields/sections.h"
#include "api/fields/shapes.h"
#include "api/fields/walk.h"
#include "api/node.h"
#include "api/text.h"
#include "base/wrap.h"

namespace parallelrun::api::fields {
namespace {

using Kind = Shape::Kind;

// 259200 as 259,200.
std::string Grouped(int64_t number) {
  std::string digits = std::to_string(number);
  for (size_t at = digits.size(); at > 3 + (number < 0 ? 1U : 0U);) digits.insert(at -= 3, ",");
  return digits;
}

std::string Range(const Shape& shape) {
  if (shape.most == kMostWhole) return ", at least " + Grouped(shape.least);
  return ", from " + Grouped(shape.least) + " to " + Grouped(shape.most);
}

std::string AtMost(const Shape& shape) { return ", at most " + Grouped(shape.most); }

const FieldList* BelowOf(const Shape& shape) {
  if (shape.kind == Kind::kList) return shape.items->fields.get();
  return shape.fields.get();
}

// "spec.inputs[0].tabular.format" and "inputs.tabular.format" mean the same.
std::string Plain(std::string_view path) {
  std::string plain;
  bool index = false;
  for (const char c : path) {
    if (c == '[') index = true;
    if (!index) plain += c;
    if (c == ']') index = false;
  }
  return plain == "spec" || plain.starts_with("spec.") ? plain : "spec." + plain;
}

std::string ChangeText(const Field& top) {
  switch (top.change) {
    case Change::kNever: return "stays as it is once the job exists in a cluster";
    case Change::kAnyTime: return "may change while the job runs";
    case Change::kWhileSuspended: return "may change while the job is suspended";
    case Change::kOnlyOn: return "may be set while the job runs, and not taken back";
  }
  return "";
}

std::string ActsText(uint16_t acts) {
  std::vector<std::string> who;
  if ((acts & kCommand) != 0) who.emplace_back("the command");
  if ((acts & kOperator) != 0) who.emplace_back("the operator");
  if ((acts & kCoordinator) != 0) who.emplace_back("the coordinator");
  if ((acts & kWorker) != 0) who.emplace_back("the nodes");
  std::string text;
  for (size_t i = 0; i < who.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == who.size() ? " and " : ", ") + who[i];
  }
  return acts == kOperator ? text + ", so only in a cluster" : text;
}

std::string ListOfFields(const FieldList& fields) {
  size_t width = 0;
  for (const Field& field : fields) width = std::max(width, field.name.size());
  std::string out;
  for (const Field& field : fields) {
    out += fmt::format("  {:<{}}  {}\n", field.name, width, TypeText(field.shape));
  }
  return out;
}

std::string Told(const std::string& path, const Field& field, const Field& top) {
  std::string out = path + ": " + TypeText(field.shape) + "\n\n" + Wrapped(field.text) + "\n";
  const bool has_default = field.write && !field.shape.fields;
  if (field.need != Need::kNone || has_default || !field.otherwise.empty()) {
    out += Wrapped("default: " + DefaultText(field));
  }
  for (const Condition* condition : field.conditions)
    out += "note:    " + condition->message + "\n";
  out += "change:  " + ChangeText(top) + "\n";
  if (top.acts != 0) out += "used by: " + ActsText(top.acts) + "\n";
  const FieldList* const below = BelowOf(field.shape);
  return below == nullptr ? out : out + "\nfields:\n" + ListOfFields(*below);
}

}  // namespace

std::string TypeText(const Shape& shape) {
  switch (shape.kind) {
    case Kind::kBoolean: return "boolean";
    case Kind::kMode:
    case Kind::kWhole: return "integer" + Range(shape);
    case Kind::kNumber: return "number" + Range(shape);
    case Kind::kText: return "text" + AtMost(shape) + " characters";
    case Kind::kPath: return "path" + AtMost(shape) + " characters";
    case Kind::kWord: return "one of " + OrList(shape.words);
    case Kind::kSize: return "number, or size as 1MB (powers of 1,024)";
    case Kind::kQuantity: return "quantity, as 500m, 2 or 4Gi";
    case Kind::kObject: return "object";
    case Kind::kOpen: return "object, as Kubernetes has it";
    case Kind::kList: return "list" + AtMost(shape) + "; each " + TypeText(*shape.items);
    case Kind::kMap: return "map" + AtMost(shape) + "; each " + TypeText(*shape.items);
  }
  return "";
}

std::string DefaultText(const Field& field) {
  if (field.need == Need::kAlways) return "required";
  if (field.need == Need::kInCluster) return "required in a cluster";
  if (!field.otherwise.empty()) return field.otherwise;
  const nlohmann::json value = field.initial ? field.initial() : nlohmann::json();
  if (value.is_null()) return "none";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

Result<std::string> Explain(std::string_view path) {
  const std::string wanted = path.empty() ? "spec" : Plain(path);
  if (wanted == "spec") return "spec: object\n\nfields:\n" + ListOfFields(SpecFields());
  std::string told;
  std::vector<std::string> known;
  EachField([&](const std::string& here, const Field& field, const Field& top) {
    known.push_back(Plain(here));
    if (known.back() == wanted) told = Told(here, field, top);
  });
  if (!told.empty()) return told;
  // What is misspelt is often only the last name, and often the path in front of it is forgotten.
  std::string closest = ClosestName(wanted, known);
  const std::string last = wanted.substr(wanted.rfind('.'));
  for (const std::string& name : known) {
    if (closest.empty() && name.ends_with(last)) closest = name;
  }
  return Error{Code::kNotFound, "there is no field " + Quoted(path) +
                                    (closest.empty() ? ": `parallelrun explain spec` lists them"
                                                     : ": did you mean " + closest + "?")};
}

}  // namespace parallelrun::api::fields
