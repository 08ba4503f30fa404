#include "api/fields/read.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "api/fields/bind.h"
#include "api/parse_parts.h"
#include "api/text.h"

namespace parallelrun::api::fields {
namespace {

using Kind = Shape::Kind;

size_t Most(const Shape& shape) { return static_cast<size_t>(shape.most); }

std::optional<std::string> ReadText(const Value& value, const Shape& shape) {
  if (shape.kind == Kind::kWord) return ReadWord(value, shape.words);
  if (shape.kind == Kind::kPath) return ReadRelativePath(value);
  return shape.least > 0 ? value.NonEmptyString(Most(shape)) : value.String(Most(shape));
}

// Each condition of the list once, the narrower ones, which fields name behind the others, first.
std::vector<const Condition*> ConditionsOf(const FieldList& list) {
  std::vector<const Condition*> all;
  for (const Field& field : list) {
    for (const Condition* condition : field.conditions) {
      if (std::find(all.begin(), all.end(), condition) == all.end()) all.push_back(condition);
    }
  }
  std::reverse(all.begin(), all.end());
  return all;
}

}  // namespace

void ReadInto(const Shape&, const Value& value, bool& out) { out = value.Bool().value_or(out); }

void ReadInto(const Shape& shape, const Value& value, int32_t& out) {
  const auto read = value.Integer(shape.least, shape.most);
  if (read) out = static_cast<int32_t>(*read);
}

void ReadInto(const Shape&, const Value& value, uint64_t& out) {
  const auto size = ReadSize(value);
  if (size) out = size->value;
}

void ReadInto(const Shape& shape, const Value& value, double& out) {
  out =
      value.Number(static_cast<double>(shape.least), static_cast<double>(shape.most)).value_or(out);
}

void ReadInto(const Shape& shape, const Value& value, Duration& out) {
  const auto read = value.Integer(shape.least, shape.most);
  if (read) out = seconds(*read);
}

void ReadInto(const Shape& shape, const Value& value, std::string& out) {
  if (auto text = ReadText(value, shape)) out = std::move(*text);
}

void ReadInto(const Shape& shape, const Value& value, std::vector<std::string>& out) {
  if (shape.merge == Shape::Merge::kAsSet) {
    out = ReadNames(value, Most(shape), Most(*shape.items));
    return;
  }
  for (const Value& item : value.List(Most(shape))) {
    out.push_back(ReadText(item, *shape.items).value_or(""));
  }
}

std::optional<Value> ReadField(Fields& map, const Field& field, void* owner, Target target) {
  const bool needed =
      field.need == Need::kAlways || (field.need == Need::kInCluster && target == Target::kCluster);
  std::optional<Value> value =
      needed ? map.Require(field.name, field.missing) : map.Take(field.name);
  if (value && field.read) field.read(*value, owner, target);
  return value;
}

void ReadFields(Fields& map, const FieldList& list, void* owner, Target target) {
  for (const Field& field : list) ReadField(map, field, owner, target);
  for (const Condition* condition : ConditionsOf(list)) {
    if (condition->applies(owner)) continue;
    for (const Field& field : list) {
      const bool on = std::find(field.conditions.begin(), field.conditions.end(), condition) !=
                      field.conditions.end();
      if (!on || map.Present({field.name}).empty()) continue;
      AddError(map.problems(), map.PathOf(field.name), condition->what, condition->mend);
    }
  }
}

void ReadObject(const Value& map, const FieldList& list, void* owner, Target target) {
  Fields fields(map);
  ReadFields(fields, list, owner, target);
  fields.Finish();
}

void CheckShape(const Value& value, const Shape& shape) {
  switch (shape.kind) {
    case Kind::kBoolean: value.Bool(); return;
    case Kind::kWhole:
    case Kind::kMode: value.Integer(shape.least, shape.most); return;
    case Kind::kNumber:
      value.Number(static_cast<double>(shape.least), static_cast<double>(shape.most));
      return;
    case Kind::kText:
    case Kind::kPath:
    case Kind::kWord: ReadText(value, shape); return;
    case Kind::kSize:
    case Kind::kQuantity: ReadQuantity(value, 1); return;
    case Kind::kOpen: value.IsMap(); return;
    case Kind::kList:
      for (const Value& item : value.List(Most(shape))) CheckShape(item, *shape.items);
      return;
    case Kind::kMap:
      if (!value.IsMap()) return;
      for (const Node::Field& field : value.node.fields) {
        CheckShape(value.Within(field.value, JoinPath(value.path, field.key)), *shape.items);
      }
      return;
    case Kind::kObject: {
      Fields fields(value);
      for (const Field& field : *shape.fields) {
        const auto below = ReadField(fields, field, nullptr, Target::kCluster);
        if (below) CheckShape(*below, field.shape);
      }
      fields.Finish();
      return;
    }
  }
}

void ReadPlainName(const Value& value, const char* what, std::string& out) {
  constexpr size_t kMost = 63;
  const auto name = value.NonEmptyString(kMost);
  if (!name) return;
  out = *name;
  const bool word = std::all_of(name->begin(), name->end(), [](char c) {
    return c == '_' || c == '-' || (static_cast<unsigned char>(c) < 0x80 && std::isalnum(c) != 0);
  });
  if (word && name->front() != '-' && std::isdigit(name->front()) == 0) return;
  value.Error(Quoted(*name) + " cannot name " + what,
              "write letters, digits, \"_\" and \"-\", a letter first");
}

}  // namespace parallelrun::api::fields
