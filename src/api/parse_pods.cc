// Code, environment and resources: what the job's pods are made of.
#include <algorithm>

#include "api/parse_parts.h"
#include "api/sizes.h"

namespace parallelrun::api {
namespace {

void CheckName(Fields& fields, const std::string& field) {
  if (const auto name = fields.Require(field)) name->NonEmptyString(kMaxObjectName);
}

void CheckOptional(Fields& fields) {
  if (const auto optional = fields.Take("optional")) optional->Bool();
}

void CheckValueFrom(const Value& map) {
  Fields fields(map);
  size_t count = 0;
  for (const char* kind : {"configMapKeyRef", "secretKeyRef"}) {
    const auto ref = fields.Take(kind);
    if (!ref) continue;
    ++count;
    Fields inner(*ref);
    CheckName(inner, "name");
    CheckName(inner, "key");
    CheckOptional(inner);
    inner.Finish();
  }
  if (const auto ref = fields.Take("fieldRef")) {
    ++count;
    Fields inner(*ref);
    if (const auto path = inner.Require("fieldPath")) path->NonEmptyString();
    if (const auto version = inner.Take("apiVersion")) version->NonEmptyString(kMaxName);
    inner.Finish();
  }
  if (const auto ref = fields.Take("resourceFieldRef")) {
    ++count;
    Fields inner(*ref);
    CheckName(inner, "resource");
    if (const auto name = inner.Take("containerName")) name->NonEmptyString(kMaxName);
    if (const auto divisor = inner.Take("divisor")) ReadQuantity(*divisor, 1000);
    inner.Finish();
  }
  if (count != 1 && map.node.kind == Node::Kind::kMap) {
    fields.Error("needs exactly one source",
                 "write one of configMapKeyRef, secretKeyRef, fieldRef and resourceFieldRef");
  }
  fields.Finish();
}

}  // namespace

void ReadCode(const Value& map, Target target, CodeSource& code) {
  Fields fields(map);
  const std::vector<std::string> given = fields.Present({"configMap", "volume", "image"});
  const auto config_map = fields.Take("configMap");
  const auto volume = fields.Take("volume");
  const auto image = fields.Take("image");
  const auto path = fields.Take("path");
  const std::string sources = "configMap, volume (with path), image and path";
  if (given.size() > 1 || (given.size() == 1 && !volume && path)) {
    fields.Error("has more than one source", "write exactly one of " + sources);
  } else if (given.empty() && !path && map.node.kind == Node::Kind::kMap) {
    fields.Error("has no source", "write exactly one of " + sources);
  }
  if (config_map) {
    code.kind = CodeKind::kConfigMap;
    Fields inner(*config_map);
    if (const auto name = inner.Require("name")) {
      code.name = name->NonEmptyString(kMaxObjectName).value_or("");
    }
    inner.Finish();
  } else if (image) {
    code.kind = CodeKind::kImage;
    Fields inner(*image);
    if (const auto folder = inner.Require("path")) {
      code.path = folder->NonEmptyString().value_or("/");
      if (code.path[0] != '/') {
        folder->Error(Quoted(code.path) + " is relative",
                      "write the folder in the image, as in /app");
      }
    }
    inner.Finish();
  } else if (volume) {
    code.kind = CodeKind::kVolume;
    code.name = volume->NonEmptyString(kMaxName).value_or("");
    if (path) code.path = ReadRelativePath(*path).value_or("");
  } else if (path) {
    code.kind = CodeKind::kFolder;
    code.path = path->NonEmptyString().value_or("");
    if (target == Target::kCluster) {
      path->Error(Quoted(code.path) + " is a folder on your machine, which a cluster cannot see",
                  "use `parallelrun render` or `parallelrun submit`, which pack it");
    }
  }
  fields.Finish();
}

void ReadEnv(const Value& list, nlohmann::json& out) {
  constexpr size_t kMaxVariable = 32768;
  for (const Value& item : list.List()) {
    Fields fields(item);
    if (const auto name = fields.Require("name")) {
      const auto text = name->NonEmptyString();
      if (text && text->find('=') != std::string::npos) {
        name->Error(Quoted(*text) + " cannot name a variable", "write name and value apart");
      }
    }
    const auto value = fields.Take("value");
    if (value) value->String(kMaxVariable);
    const auto from = fields.Take("valueFrom");
    if (from) CheckValueFrom(*from);
    if (value && from) fields.Error("has both value and valueFrom", "keep one of them");
    fields.Finish();
    out.push_back(WithoutNulls(item.node));
  }
}

void ReadEnvFrom(const Value& list, nlohmann::json& out) {
  for (const Value& item : list.List()) {
    Fields fields(item);
    for (const char* kind : {"configMapRef", "secretRef"}) {
      const auto ref = fields.Take(kind);
      if (!ref) continue;
      Fields inner(*ref);
      CheckName(inner, "name");
      CheckOptional(inner);
      inner.Finish();
    }
    if (const auto prefix = fields.Take("prefix")) prefix->String(kMaxObjectName);
    if (item.node.kind == Node::Kind::kMap &&
        fields.Present({"configMapRef", "secretRef"}).size() != 1) {
      fields.Error("needs exactly one source", "write configMapRef or secretRef: {name: NAME}");
    }
    fields.Finish();
    out.push_back(WithoutNulls(item.node));
  }
}

std::optional<int64_t> ReadQuantity(const Value& value, int64_t scale) {
  const bool is_integer = value.node.kind == Node::Kind::kInteger;
  const auto text = is_integer ? std::to_string(value.node.integer) : value.String(kMaxQuantity);
  if (!text) return std::nullopt;
  const Result<int64_t> quantity = ParseQuantity(*text, scale);
  if (quantity.ok()) return *quantity;
  value.Error(quantity.error().message);
  return std::nullopt;
}

nlohmann::json ReadResources(const Value& map) {
  constexpr size_t kMaxAmounts = 32;
  constexpr size_t kMaxClaims = 16;
  Fields fields(map);
  for (const char* name : {"limits", "requests"}) {
    const auto amounts = fields.Take(name);
    if (!amounts || !amounts->IsMap()) continue;
    if (amounts->node.fields.size() > kMaxAmounts) {
      amounts->Error("more than " + std::to_string(kMaxAmounts) + " resources");
      continue;
    }
    for (const Node::Field& field : amounts->node.fields) {
      ReadQuantity(map.Within(field.value, JoinPath(amounts->path, field.key)),
                   field.key == "cpu" ? 1000 : 1);
    }
  }
  if (const auto claims = fields.Take("claims")) {
    for (const Value& item : claims->List(kMaxClaims)) {
      Fields claim(item);
      if (const auto name = claim.Require("name")) name->NonEmptyString(kMaxName);
      if (const auto request = claim.Take("request")) request->NonEmptyString(kMaxName);
      claim.Finish();
    }
  }
  fields.Finish();
  return WithoutNulls(map.node);
}

nlohmann::json ReadPodTemplate(const Value& map) {
  Fields fields(map);
  constexpr size_t kMaxAnnotation = 32768;
  if (const auto metadata = fields.Take("metadata")) {
    Fields inner(*metadata);
    if (const auto labels = inner.Take("labels")) ReadLabels(*labels);
    if (const auto notes = inner.Take("annotations")) ReadAnnotations(*notes, kMaxAnnotation);
    inner.Finish();
  }
  if (const auto spec = fields.Take("spec")) spec->IsMap();
  fields.Finish();
  return WithoutNulls(map.node);
}

}  // namespace parallelrun::api
