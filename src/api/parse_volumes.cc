// Volumes. The schema in crds/ knows the same kinds, with the same fields.
#include <algorithm>
#include <map>

#include "api/parse_parts.h"

namespace parallelrun {
namespace {

constexpr size_t kMaxVolumes = 64;
constexpr int64_t kMaxMode = 0777;

enum class Is { kName, kText, kShort, kBool, kMode, kQuantity, kKeys, kTexts, kSecret, kPolicy };

struct SourceField {
  std::string name;
  Is is;
  bool required = false;
};

// The kinds with the fields that people write by hand. Without fields: Kubernetes judges them.
const std::map<std::string, std::vector<SourceField>>& KnownSources() {
  static const std::map<std::string, std::vector<SourceField>> sources = {
      {"awsElasticBlockStore", {}},
      {"azureDisk", {}},
      {"azureFile", {}},
      {"cinder", {}},
      {"configMap",
       {{"name", Is::kName, true},
        {"items", Is::kKeys},
        {"defaultMode", Is::kMode},
        {"optional", Is::kBool}}},
      {"csi",
       {{"driver", Is::kName, true},
        {"readOnly", Is::kBool},
        {"fsType", Is::kShort},
        {"volumeAttributes", Is::kTexts},
        {"nodePublishSecretRef", Is::kSecret}}},
      {"downwardAPI", {}},
      {"emptyDir", {{"medium", Is::kShort}, {"sizeLimit", Is::kQuantity}}},
      {"ephemeral", {}},
      {"fc", {}},
      {"flexVolume", {}},
      {"gcePersistentDisk", {}},
      {"hostPath", {{"path", Is::kText, true}, {"type", Is::kShort}}},
      {"image", {{"reference", Is::kText, true}, {"pullPolicy", Is::kPolicy}}},
      {"iscsi", {}},
      {"nfs", {{"server", Is::kName, true}, {"path", Is::kText, true}, {"readOnly", Is::kBool}}},
      {"persistentVolumeClaim", {{"claimName", Is::kName, true}, {"readOnly", Is::kBool}}},
      {"portworxVolume", {}},
      {"projected", {}},
      {"secret",
       {{"secretName", Is::kName, true},
        {"items", Is::kKeys},
        {"defaultMode", Is::kMode},
        {"optional", Is::kBool}}},
      {"vsphereVolume", {}},
  };
  return sources;
}

void CheckKeys(const Value& list) {
  for (const Value& item : list.List()) {
    Fields fields(item);
    if (const auto key = fields.Require("key")) key->NonEmptyString(kMaxObjectName);
    if (const auto path = fields.Require("path")) path->NonEmptyString();
    if (const auto mode = fields.Take("mode")) mode->Integer(0, kMaxMode);
    fields.Finish();
  }
}

void CheckSourceField(const Value& value, const SourceField& field) {
  switch (field.is) {
    case Is::kName: value.NonEmptyString(kMaxObjectName); return;
    case Is::kText: value.NonEmptyString(); return;
    case Is::kShort: value.String(kMaxName); return;
    case Is::kBool: value.Bool(); return;
    case Is::kMode: value.Integer(0, kMaxMode); return;
    case Is::kQuantity: ReadQuantity(value, 1); return;
    case Is::kKeys: CheckKeys(value); return;
    case Is::kTexts: {
      constexpr size_t kMaxAttribute = 4096;
      ReadTexts(value, kMaxAttribute);
      return;
    }
    case Is::kSecret: {
      Fields secret(value);
      if (const auto name = secret.Require("name")) name->NonEmptyString(kMaxObjectName);
      return secret.Finish();
    }
    case Is::kPolicy: ReadPullPolicy(value); return;
  }
}

void CheckSource(const Value& map, const std::vector<SourceField>& known) {
  Fields fields(map);
  if (known.empty()) return;
  for (const SourceField& field : known) {
    const auto value = field.required ? fields.Require(field.name) : fields.Take(field.name);
    if (value) CheckSourceField(*value, field);
  }
  fields.Finish();
}

Volume ReadVolume(const Value& map) {
  Volume volume;
  Fields fields(map);
  if (const auto name = fields.Require("name")) {
    volume.name = name->NonEmptyString(kMaxName).value_or("");
    if (!volume.name.empty() && !IsDnsLabel(volume.name)) {
      name->Error(Quoted(volume.name) + " cannot name a volume",
                  "write lower-case letters, digits and \"-\"");
    }
  }
  std::vector<std::string> given;
  for (const auto& [kind, known] : KnownSources()) {
    const auto source = fields.Take(kind);
    if (!source) continue;
    given.push_back(kind);
    volume.kind = kind;
    volume.source = WithoutNulls(source->node);
    CheckSource(*source, known);
  }
  // What is misspelt is reported as such.
  const bool unknown =
      std::any_of(map.node.fields.begin(), map.node.fields.end(), [](const Node::Field& field) {
        return field.key != "name" && !KnownSources().contains(field.key);
      });
  if (given.size() > 1) {
    fields.Error("has " + std::to_string(given.size()) + " sources (" + OrList(given) + ")",
                 "keep exactly one");
  } else if (given.empty() && !unknown && map.node.kind == Node::Kind::kMap) {
    fields.Error("has no source", "write one, such as persistentVolumeClaim: {claimName: CLAIM}");
  }
  fields.Finish();
  return volume;
}

}  // namespace

void ReadVolumes(const Value& list, JobSpec& spec) {
  for (const Value& item : list.List(kMaxVolumes)) {
    Volume volume = ReadVolume(item);
    const bool known = std::any_of(spec.volumes.begin(), spec.volumes.end(),
                                   [&](const Volume& other) { return other.name == volume.name; });
    if (known && !volume.name.empty()) {
      AddError(item.problems, JoinPath(item.path, "name"),
               Quoted(volume.name) + " is the name of another volume too",
               "give each volume a name of its own");
    }
    spec.volumes.push_back(std::move(volume));
  }
}

}  // namespace parallelrun
