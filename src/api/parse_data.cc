// Inputs, output, logs, state: where data comes from and goes to.
#include <algorithm>

#include "api/parse_parts.h"

namespace parallelrun {
namespace {

constexpr size_t kMaxInputs = 32;

// Unique within `seen`, which it joins.
std::string ReadInputName(Fields& fields, std::vector<std::string>& seen) {
  const auto value = fields.Require("name");
  const auto name = value ? value->NonEmptyString(kMaxName) : std::nullopt;
  if (!name) return "";
  const bool word = std::all_of(name->begin(), name->end(), [](char c) {
    return c == '_' || c == '-' || (static_cast<unsigned char>(c) < 0x80 && std::isalnum(c) != 0);
  });
  if (!word || name->front() == '-' || std::isdigit(name->front()) != 0) {
    value->Error(Quoted(*name) + " cannot name an input",
                 "write letters, digits, \"_\" and \"-\", a letter first");
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
    from.volume = volume->NonEmptyString(kMaxName).value_or("");
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

void ReadColumnTypes(const Value& map, std::map<std::string, ColumnType>& types) {
  if (!map.IsMap()) return;
  constexpr size_t kMostColumns = 1000;
  if (map.node.fields.size() > kMostColumns) {
    map.Error("has more than 1,000 columns", "name those whose type is not what is decided");
    return;
  }
  for (const Node::Field& field : map.node.fields) {
    const Value value{field.value, JoinPath(map.path, field.key), map.problems};
    if (const auto type = value.Enum<ColumnType>()) types[field.key] = *type;
  }
}

// Of a comment, or that takes the meaning from what follows it.
void ReadMark(const Value& value, std::string& out) {
  const auto text = value.NonEmptyString();
  if (!text) return;
  const auto byte = static_cast<unsigned char>(text->front());
  const bool good =
      text->size() == 1 && byte > ' ' && byte < 0x7F && std::isalnum(byte) == 0 && *text != "\"";
  if (good) {
    out = *text;
  } else {
    value.Error(Quoted(*text) + " cannot be told from data",
                "write one character that is no letter, digit, blank or quote, as in \"#\"");
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
    const auto text = value->NonEmptyString(kMaxName);
    if (text) options.encoding = *text;
    const std::string name = text ? Squashed(*text) : "";
    if (name.starts_with("utf16") || name.starts_with("utf32")) {
      value->Error(Quoted(*text) + " cannot be cut into rows by its bytes",
                   "convert the files to utf-8");
    }
  }
  fields.To("quotedNewlines", options.quoted_newlines);
  fields.ToEnum("typing", options.typing);
  if (const auto value = fields.Take("dtypes")) ReadColumnTypes(*value, options.dtypes);
  if (const auto value = fields.Take("naValues")) {
    for (const Value& item : value->List()) {
      if (const auto text = item.String()) options.na_values.push_back(*text);
    }
  }
  fields.To("keepDefaultNa", options.keep_default_na);
  fields.To("skipRows", options.skip_rows, 0);
  if (const auto value = fields.Take("comment")) ReadMark(*value, options.comment);
  if (const auto value = fields.Take("escape")) ReadMark(*value, options.escape);
  fields.ToEnum("badRows", options.bad_rows);
  if (options.typing == Typing::kPerMiniBatch) {
    for (const std::string& name :
         fields.Present({"dtypes", "naValues", "keepDefaultNa", "comment", "escape", "badRows"})) {
      AddError(fields.problems(), fields.PathOf(name), "has no meaning with typing: PerMiniBatch",
               "remove it, or typing");
    }
  }
  if (!parquet) return;
  for (const std::string& name :
       fields.Present({"delimiter", "header", "encoding", "quotedNewlines", "dtypes", "naValues",
                       "keepDefaultNa", "skipRows", "comment", "escape", "badRows"})) {
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
    if (const auto exclude = source.Take("exclude"))
      input.exclude = ReadNames(*exclude, kMaxItems, kMaxText);
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

void ReadInputs(const Value& list, JobSpec& spec) {
  const std::string mend = "write at most 32; put what belongs together below one folder";
  std::vector<std::string> seen;
  for (const Value& item : list.List(kMaxInputs, mend))
    spec.inputs.push_back(ReadInput(item, seen));
}

void ReadSideInputs(const Value& list, JobSpec& spec) {
  std::vector<std::string> seen;
  for (const Input& input : spec.inputs) seen.push_back(input.name);
  std::vector<std::string> mounts;
  for (const Value& item : list.List(kMaxInputs)) {
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
  fields.To("volume", place.volume, kMaxName);
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
