// Volumes, inputs, output: where data comes from and goes to.
#include <algorithm>
#include <map>

#include "api/parse_parts.h"

namespace parallelrun {
namespace {

constexpr size_t kMostInputs = 32;
constexpr size_t kMostVolumes = 64;

// The fields of the kinds of volume that people write by hand; the first ones are required.
struct SourceFields {
  size_t required;
  std::vector<std::string> names;
};

const std::map<std::string, SourceFields>& KnownSources() {
  static const std::map<std::string, SourceFields> sources = {
      {"awsElasticBlockStore", {0, {}}},
      {"azureDisk", {0, {}}},
      {"azureFile", {0, {}}},
      {"cephfs", {0, {}}},
      {"cinder", {0, {}}},
      {"configMap", {1, {"name", "items", "defaultMode", "optional"}}},
      {"csi", {0, {}}},
      {"downwardAPI", {0, {}}},
      {"emptyDir", {0, {"medium", "sizeLimit"}}},
      {"ephemeral", {0, {}}},
      {"fc", {0, {}}},
      {"flexVolume", {0, {}}},
      {"flocker", {0, {}}},
      {"gcePersistentDisk", {0, {}}},
      {"gitRepo", {0, {}}},
      {"glusterfs", {0, {}}},
      {"hostPath", {1, {"path", "type"}}},
      {"image", {0, {"reference", "pullPolicy"}}},
      {"iscsi", {0, {}}},
      {"nfs", {2, {"server", "path", "readOnly"}}},
      {"persistentVolumeClaim", {1, {"claimName", "readOnly"}}},
      {"photonPersistentDisk", {0, {}}},
      {"portworxVolume", {0, {}}},
      {"projected", {0, {}}},
      {"quobyte", {0, {}}},
      {"rbd", {0, {}}},
      {"scaleIO", {0, {}}},
      {"secret", {1, {"secretName", "items", "defaultMode", "optional"}}},
      {"storageos", {0, {}}},
      {"vsphereVolume", {0, {}}},
  };
  return sources;
}

void CheckSource(const Value& map, const SourceFields& known) {
  Fields fields(map);
  if (known.names.empty()) return;
  for (size_t i = 0; i < known.names.size(); ++i) {
    const std::string& name = known.names[i];
    const auto value = i < known.required ? fields.Require(name) : fields.Take(name);
    if (!value) continue;
    if (i < known.required) value->NonEmptyString();
    if (name == "readOnly" || name == "optional") value->Bool();
  }
  fields.Finish();
}

Volume ReadVolume(const Value& map) {
  Volume volume;
  Fields fields(map);
  if (const auto name = fields.Require("name")) {
    volume.name = name->NonEmptyString().value_or("");
    if (!volume.name.empty() && !IsDnsLabel(volume.name)) {
      name->Error(Quoted(volume.name) + " cannot name a volume",
                  "write lower-case letters, digits and \"-\", at most 63");
    }
  }
  std::vector<std::string> given;
  for (const auto& [kind, known] : KnownSources()) {
    const auto source = fields.Take(kind);
    if (!source) continue;
    given.push_back(kind);
    volume.kind = kind;
    volume.source = source->node.ToJson();
    CheckSource(*source, known);
  }
  const size_t named = map.node.Find("name") != nullptr ? 1 : 0;
  if (given.size() > 1) {
    fields.Error("has " + std::to_string(given.size()) + " sources (" + OrList(given) + ")",
                 "keep exactly one");
  } else if (given.empty() && map.node.fields.size() <= named &&
             map.node.kind == Node::Kind::kMap) {
    fields.Error("has no source", "write one, such as persistentVolumeClaim: {claimName: CLAIM}");
  }
  fields.Finish();
  return volume;
}

// Unique within `seen`, which it joins.
std::string ReadInputName(Fields& fields, std::vector<std::string>& seen) {
  const auto value = fields.Require("name");
  const auto name = value ? value->NonEmptyString() : std::nullopt;
  if (!name) return "";
  const bool word = std::all_of(name->begin(), name->end(), [](char c) {
    return c == '_' || c == '-' || (static_cast<unsigned char>(c) < 0x80 && std::isalnum(c) != 0);
  });
  if (!word || name->size() > 63 || name->front() == '-' || std::isdigit(name->front()) != 0) {
    value->Error(Quoted(*name) + " cannot name an input",
                 "write letters, digits, \"_\" and \"-\", a letter first, at most 63");
  }
  if (std::find(seen.begin(), seen.end(), *name) != seen.end()) {
    value->Error(Quoted(*name) + " is the name of another input too",
                 "give each of inputs and sideInputs a name of its own");
  }
  seen.push_back(*name);
  return *name;
}

void ReadFrom(Fields& fields, VolumePath& from) {
  if (const auto volume = fields.Require("volume", "write the name of one of spec.volumes")) {
    from.volume = volume->NonEmptyString().value_or("");
  }
  if (const auto path = fields.Take("path")) from.path = ReadRelativePath(*path).value_or("");
}

void ReadPattern(const Value& value, std::string& out) {
  const auto text = value.NonEmptyString();
  if (!text) return;
  out = *text;
  if (text->front() == '/' || text->find("..") != std::string::npos) {
    value.Error(Quoted(*text) + " leaves the input's path", "write it relative, as in **/*.png");
  } else if (text->find('{') != std::string::npos) {
    value.Error("braces in " + Quoted(*text) + " are not expanded",
                "write *, ?, [abc] and **, or one input for each pattern");
  }
}

void ReadTabular(Fields& fields, TabularOptions& options) {
  fields.ToEnum("format", options.format);
  const bool parquet = options.format == TabularFormat::kParquet;
  if (const auto value = fields.Take("delimiter")) {
    const auto text = value->NonEmptyString();
    if (text) options.delimiter = *text;
    if (text && (text->size() != 1 || *text == "\n" || *text == "\r" || *text == "\"")) {
      value->Error(Quoted(*text) + " cannot separate columns",
                   "write one character, as in \";\" or \"\\t\"");
    }
  }
  fields.ToEnum("header", options.header);
  if (const auto value = fields.Take("encoding")) {
    const auto text = value->NonEmptyString();
    if (text) options.encoding = *text;
    const std::string name = text ? Squashed(*text) : "";
    if (name.starts_with("utf16") || name.starts_with("utf32")) {
      value->Error(Quoted(*text) + " cannot be cut into rows by its bytes",
                   "convert the files to utf-8");
    }
  }
  fields.To("quotedNewlines", options.quoted_newlines);
  if (!parquet) return;
  for (const std::string& name :
       fields.Present({"delimiter", "header", "encoding", "quotedNewlines"})) {
    AddError(fields.problems(), fields.PathOf(name), "has no meaning for Parquet", "remove it");
  }
}

void ReadPartitionFormat(const Value& value, std::string& out) {
  const auto text = value.NonEmptyString();
  if (!text) return;
  out = *text;
  size_t keys = 0;
  bool good = true;
  for (size_t at = 0; at < text->size() && good; ++at) {
    if ((*text)[at] == '}') good = false;
    if ((*text)[at] != '{') continue;
    const size_t end = text->find_first_of("{}", at + 1);
    good = end != std::string::npos && (*text)[end] == '}' && end > at + 1;
    ++keys;
    at = good ? end : at;
  }
  if (!good || keys == 0) {
    value.Error(Quoted(*text) + " names no keys",
                "write each key in braces, as in {user}/{season}/{genre}.wav");
  }
}

Input ReadInput(const Value& map, std::vector<std::string>& seen) {
  Input input;
  Fields fields(map);
  input.name = ReadInputName(fields, seen);
  const std::vector<std::string> kinds = {"files", "tabular", "jsonLines"};
  const std::vector<std::string> given = fields.Present(kinds);
  if (map.node.kind == Node::Kind::kMap && given.size() != 1) {
    fields.Error("has " + (given.empty() ? "no kind" : OrList(given) + " at once"),
                 "write exactly one of files, tabular and jsonLines");
  }
  for (const auto& [word, kind] : EnumWords<InputKind>()) {
    const auto value = fields.Take(std::string(word));
    if (!value) continue;
    input.kind = kind;
    Fields source(*value);
    ReadFrom(source, input.from);
    if (const auto pattern = source.Take("pattern")) ReadPattern(*pattern, input.pattern);
    if (const auto exclude = source.Take("exclude")) input.exclude = ReadNames(*exclude);
    if (kind == InputKind::kTabular) ReadTabular(source, input.tabular);
    source.Finish();
  }
  if (const auto format = fields.Take("partitionFormat")) {
    ReadPartitionFormat(*format, input.partition_format);
  }
  fields.Finish();
  return input;
}

}  // namespace

void ReadVolumes(const Value& list, JobSpec& spec) {
  const std::vector<Value> items = list.List();
  if (items.size() > kMostVolumes) list.Error("more than 64 volumes");
  for (const Value& item : items) {
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

void ReadInputs(const Value& list, JobSpec& spec) {
  const std::vector<Value> items = list.List();
  if (items.size() > kMostInputs) {
    list.Error("more than 32 inputs", "put what belongs together below one folder");
  }
  std::vector<std::string> seen;
  for (const Value& item : items) spec.inputs.push_back(ReadInput(item, seen));
}

void ReadSideInputs(const Value& list, JobSpec& spec) {
  std::vector<std::string> seen;
  for (const Input& input : spec.inputs) seen.push_back(input.name);
  const std::vector<Value> items = list.List();
  if (items.size() > kMostInputs) list.Error("more than 32 side inputs");
  std::vector<std::string> mounts;
  for (const Value& item : items) {
    SideInput input;
    Fields fields(item);
    input.name = ReadInputName(fields, seen);
    ReadFrom(fields, input.from);
    if (const auto value = fields.Take("mountPath")) {
      const auto text = value->NonEmptyString();
      if (text) input.mount_path = *text;
      if (text && (text->front() != '/' || *text == "/" || text->find(':') != std::string::npos ||
                   (*text + "/").find("/../") != std::string::npos)) {
        value->Error(Quoted(*text) + " is no place for a folder",
                     "write an absolute path without \":\" and \"..\", as in /models");
      } else if (text && std::find(mounts.begin(), mounts.end(), *text) != mounts.end()) {
        value->Error(Quoted(*text) + " is the mountPath of another side input too");
      }
      mounts.push_back(input.mount_path);
    }
    fields.Finish();
    spec.side_inputs.push_back(std::move(input));
  }
}

void ReadOutput(const Value& map, Output& output) {
  Fields fields(map);
  ReadFrom(fields, output.to);
  fields.ToEnum("action", output.action);
  if (const auto value = fields.Take("fileName")) {
    constexpr std::string_view kForbidden = "~\"#%&*:<>?/\\{|}";
    const auto text = value->NonEmptyString();
    if (text) output.file_name = *text;
    if (text && (text->find_first_of(kForbidden) != std::string::npos || *text == "." ||
                 *text == ".." || text->size() > 200 ||
                 std::any_of(text->begin(), text->end(),
                             [](char c) { return static_cast<unsigned char>(c) < 0x20; }))) {
      value->Error(Quoted(*text) + " cannot name the output file",
                   "write a name without " + std::string(kForbidden) +
                       ", at most 200 bytes; the folder goes into output.path");
    }
  }
  fields.ToEnum("order", output.order);
  fields.ToEnum("ifExists", output.if_exists);
  fields.To("mountOnNodes", output.mount_on_nodes);
  fields.Finish();
}

namespace {

void ReadPlace(Fields& fields, VolumePath& place) {
  fields.To("volume", place.volume);
  if (const auto path = fields.Take("path")) place.path = ReadRelativePath(*path).value_or("");
}

}  // namespace

void ReadLogs(const Value& map, VolumePath& logs) {
  Fields fields(map);
  ReadPlace(fields, logs);
  fields.Finish();
}

void ReadState(const Value& map, StateOptions& state) {
  Fields fields(map);
  ReadPlace(fields, state.in);
  fields.To("ephemeral", state.ephemeral);
  if (state.ephemeral && !fields.Present({"volume", "path"}).empty()) {
    fields.Error("ephemeral state lies on no volume", "remove volume and path, or ephemeral");
  }
  fields.Finish();
}

}  // namespace parallelrun
