#include "api/fields/schema.h"

#include <nlohmann/json.hpp>

#include "api/fields/sections.h"
#include "api/fields/shapes.h"

namespace parallelrun::api::fields {
namespace {

using nlohmann::ordered_json;
using Kind = Shape::Kind;

constexpr char kRules[] = "x-kubernetes-validations";
constexpr char kFixed[] = "delete the job and create it anew, or give the new one another name";

ordered_json RuleJson(const CelRule& rule) {
  ordered_json out = {{"rule", rule.rule}};
  if (!rule.field.empty()) out["fieldPath"] = rule.field;
  out["message"] = rule.message;
  return out;
}

const char* TypeName(Kind kind) {
  switch (kind) {
    case Kind::kBoolean: return "boolean";
    case Kind::kWhole:
    case Kind::kMode: return "integer";
    case Kind::kNumber: return "number";
    case Kind::kText:
    case Kind::kPath:
    case Kind::kWord: return "string";
    case Kind::kSize:
    case Kind::kQuantity: return nullptr;
    case Kind::kObject:
    case Kind::kOpen:
    case Kind::kMap: return "object";
    case Kind::kList: return "array";
  }
  return nullptr;
}

void AddMerge(Shape::Merge merge, ordered_json& out) {
  switch (merge) {
    case Shape::Merge::kUnsaid: return;
    case Shape::Merge::kAsSet: out["x-kubernetes-list-type"] = "set"; return;
    case Shape::Merge::kWhole: out["x-kubernetes-list-type"] = "atomic"; return;
    case Shape::Merge::kByName:
      out["x-kubernetes-list-type"] = "map";
      out["x-kubernetes-list-map-keys"] = {"name"};
      return;
  }
}

void AddBounds(const Shape& shape, ordered_json& out) {
  switch (shape.kind) {
    case Kind::kWhole: out["format"] = "int32"; [[fallthrough]];
    case Kind::kMode:
    case Kind::kNumber:
      out["minimum"] = shape.least;
      out["maximum"] = shape.most;
      return;
    case Kind::kText:
      if (shape.least > 0) out["minLength"] = shape.least;
      [[fallthrough]];
    case Kind::kPath:
    case Kind::kSize:
    case Kind::kQuantity: out["maxLength"] = shape.most; return;
    case Kind::kWord: out["enum"] = shape.words; return;
    case Kind::kOpen: out["x-kubernetes-preserve-unknown-fields"] = true; return;
    case Kind::kMap: out["maxProperties"] = shape.most; return;
    case Kind::kList:
      if (shape.least > 0) out["minItems"] = shape.least;
      out["maxItems"] = shape.most;
      AddMerge(shape.merge, out);
      return;
    case Kind::kBoolean:
    case Kind::kObject: return;
  }
}

ordered_json FieldJson(const Field& field, bool held);

// `held`: each field below has to stay as it is.
void AddShape(const Shape& shape, bool held, ordered_json& out) {
  if (shape.items) {
    ordered_json items = ordered_json::object();
    if (const char* const type = TypeName(shape.items->kind)) items["type"] = type;
    if (TypeName(shape.items->kind) == nullptr) items["x-kubernetes-int-or-string"] = true;
    AddBounds(*shape.items, items);
    AddShape(*shape.items, false, items);
    out[shape.kind == Kind::kList ? "items" : "additionalProperties"] = std::move(items);
  }
  ordered_json rules = ordered_json::array();
  for (const CelRule& rule : shape.rules) rules.push_back(RuleJson(rule));
  if (shape.fields) {
    for (const Field& field : *shape.fields) {
      if (field.need != Need::kNone) out["required"].push_back(field.name);
      out["properties"][field.name] = FieldJson(field, held);
    }
    for (const Field& field : *shape.fields) {
      for (const Condition* condition : field.conditions) {
        rules.push_back(RuleJson({condition->allowed + " || !has(self." + field.name + ")",
                                  condition->message, "." + field.name}));
      }
    }
  }
  if (!rules.empty()) out[kRules] = std::move(rules);
}

ordered_json FieldJson(const Field& field, bool held) {
  ordered_json out = ordered_json::object();
  if (const char* const type = TypeName(field.shape.kind)) {
    out["type"] = type;
  } else {
    out["x-kubernetes-int-or-string"] = true;
  }
  AddBounds(field.shape, out);
  if (field.server_fills) out["default"] = ordered_json(field.initial());
  out["description"] = field.text;
  AddShape(field.shape, false, out);
  if (held && field.change == Change::kNever) {
    out[kRules].push_back(
        RuleJson({"self == oldSelf", std::string("cannot change once the job exists: ") + kFixed}));
  }
  return out;
}

// Who writes the spec leaves the status as it is, so where the status differs the spec does not.
// That is asked first: each look at a field of the spec costs the API server 20 to 40 microseconds,
// since it has many, and the operator writes the status.
constexpr char kStatusIsWritten[] =
    "has(self.status) != has(oldSelf.status) || has(self.status) && self.status != oldSelf.status "
    "|| ";

// A field that may not change may neither come nor go. What is required or filled in is always
// there.
ordered_json ComesOrGoes() {
  std::string same;
  std::string which;
  std::string last;
  for (const Field& field : SpecFields()) {
    if (field.change != Change::kNever || field.need != Need::kNone || field.server_fills) continue;
    const std::string now = "has(self.spec." + field.name + ")";
    const std::string before = "has(oldSelf.spec." + field.name + ")";
    same += (same.empty() ? "(" : " && ") + now + " == " + before;
    if (!last.empty()) which += last;
    last = now + " != " + before + " ? \"" + field.name + "\" : ";
  }
  // One of them it is: the last needs no question.
  const size_t name = last.find('"');
  which += last.substr(name, last.rfind('"') + 1 - name);
  return {
      {"rule", kStatusIsWritten + same + ")"},
      {"messageExpression",
       "(" + which + R"() + " cannot be added or removed once the job exists: )" + kFixed + '"'},
      {"fieldPath", ".spec"}};
}

ordered_json OnlyWhileSuspended() {
  std::string names;
  std::string there;
  std::string same;
  for (const Field& field : SpecFields()) {
    if (field.change != Change::kWhileSuspended) continue;
    const std::string now = "self.spec." + field.name;
    const std::string before = "oldSelf.spec." + field.name;
    names += (names.empty() ? "" : " and ") + field.name;
    there += " && has(" + now + ") == has(" + before + ")";
    same += " && (!has(" + now + ") || " + now + " == " + before + ")";
  }
  return {
      {"rule", kStatusIsWritten + std::string("self.spec.suspend || oldSelf.spec.suspend || ") +
                   there.substr(4) + same},
      {"message", names + " can change only while the job is suspended: set suspend: true first"},
      {"fieldPath", ".spec"}};
}

}  // namespace

ordered_json SpecSchema() {
  ordered_json out = {{"type", "object"},
                      {"description", "What to run, over which data, and with how many nodes."}};
  Shape spec = Object(SpecFields());
  spec.rules = SpecRules();
  AddShape(spec, true, out);
  return out;
}

ordered_json JobRules() { return {ComesOrGoes(), OnlyWhileSuspended()}; }

}  // namespace parallelrun::api::fields
