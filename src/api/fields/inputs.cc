// Inputs and side inputs.
#include <optional>
#include <utility>

#include "api/fields/bind.h"
#include "api/fields/read.h"
#include "api/fields/sections.h"
#include "api/fields/shapes.h"
#include "api/job.h"
#include "api/text.h"

namespace parallelrun::api::fields {
namespace {

void ReadInputName(const Value& value, std::string& out) { ReadPlainName(value, "an input", out); }

void ReadMountPath(const Value& value, std::string& out) {
  const auto text = value.NonEmptyString();
  if (!text) return;
  out = *text;
  if (text->front() != '/' || *text == "/" || text->find(':') != std::string::npos ||
      (*text + "/").find("/../") != std::string::npos) {
    value.Error(Quoted(*text) + " is no place for a folder",
                "write an absolute path without \":\" and \"..\", as in /models");
  }
}

// With the slash at its end that in a store says that it is a prefix: OfKind takes it off
// elsewhere.
void ReadInputPath(const Value& value, std::string& out) {
  std::optional<std::string> path = ReadRelativePath(value);
  if (!path) return;
  if (*path != "." && value.String().value_or("").ends_with('/')) *path += '/';
  out = std::move(*path);
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
    good = end != std::string::npos && (*text)[end] == '}';
    if (end != at + 1) ++keys;  // {} is any text, without a name
    at = good ? end : at;
  }
  if (!good || keys == 0) {
    value.Error(Quoted(*text) + " names no keys",
                "write each key in braces, as in {user}/{season}/{genre}.wav");
  }
}

// Which files: the same for every kind of input.
FieldList Source() {
  return {
      BoundIn("volume", &Input::from, &VolumePath::volume, Text(kMostName), "One of spec.volumes."),
      Bound("store", &Input::store, Text(kMostName), "In place of a volume: one of spec.stores."),
      BoundIn(
          "path", &Input::from, &VolumePath::path, Path(),
          "Folder or file, relative to the volume; below the store's URL the key of one object, or "
          "a prefix of keys, which it always is with a slash at its end. All of it if not given.",
          ReadInputPath)
          .Otherwise("all of the volume or store"),
      Bound("pattern", &Input::pattern,
            Text(kMostText)
                .With({R"(!self.startsWith("/") && !self.contains(".."))",
                       "leaves the input's path: write it relative, as in **/*.png"})
                .With({R"(!self.contains("{"))",
                       "braces are not expanded: write *, ?, [abc] and **, or one input for each "
                       "pattern"}),
            "Which files, relative to the path, as **/*.png; every file if not given.", ReadPattern)
          .Otherwise("every file"),
      Bound("exclude", &Input::exclude, ListOf(Text(kMostText), 100, Shape::Merge::kAsSet),
            "Files and folders to leave out; patterns as in pattern."),
  };
}

FieldList FileFields() {
  FieldList fields = Source();
  fields.push_back(
      Bound("access", &Input::access, WordsOf<Access>(),
            "Of an input in a store, what run() gets: paths of files that the node has fetched "
            "(Path, if not given), or the URLs of the objects (Uri).")
          .UnlessInitial());
  return fields;
}

FieldList TableFields() {
  FieldList fields = Source();
  fields.insert(fields.end(), TabularFields().begin(), TabularFields().end());
  return fields;
}

// An input has one kind, whose fields are those of the input itself.
Field OfKind(InputKind kind, FieldList fields, std::string text, std::vector<CelRule> rules = {}) {
  Shape shape =
      Object(std::move(fields))
          .With({"has(self.volume) || has(self.store)",
                 "is required: write the name of one of spec.volumes, or store with that of one of "
                 "spec.stores",
                 ".volume"})
          .With({"!has(self.volume) || !has(self.store)",
                 "stands beside a store: keep one of the two", ".volume"});
  for (CelRule& rule : rules) shape = std::move(shape).With(std::move(rule));
  return Both<Input>(
      std::string(EnumWord(kind)), shape, std::move(text),
      [kind, below = shape.fields](const Input& input) {
        return input.kind == kind ? WriteFields(*below, &input) : nlohmann::json();
      },
      [kind, below = shape.fields](const Value& value, Input& input, Target target) {
        input.kind = kind;
        ReadObject(value, *below, &input, target);
        if (input.store.empty() && input.from.path.ends_with('/')) input.from.path.pop_back();
      });
}

}  // namespace

const FieldList& InputFields() {
  static const FieldList fields = {
      Bound("name", &Input::name, PlainName("an input"),
            "Name that placeholders and messages give.", ReadInputName)
          .Required(),
      OfKind(
          InputKind::kFiles, FileFields(), "Each file is an item; run() gets paths.",
          {{R"cel(!has(self.access) || self.access != "Uri" || has(self.store))cel",
            "Uri is for inputs in stores: leave it out, run() gets the paths of a volume's files",
            ".access"}}),
      OfKind(InputKind::kTabular, TableFields(), "Each row is an item; run() gets a DataFrame."),
      OfKind(InputKind::kJsonLines, Source(), "Each line is an item; run() gets a list of dict."),
      Bound(
          "partitionFormat", &Input::partition_format,
          Text(kMostText).With(
              {R"(self.matches("^([^{}]|[{][}])*[{][^{}]+[}]([^{}]|[{][^{}]*[}])*$"))",
               "names no keys: write each key in braces, as in "
               "{user}/{season}/{genre}.wav"}),
          "Names parts of each file's path below the input's path, as {user}/{season}/{genre}.wav; "
          "the whole path must match. {} is any part of a name that is no column.",
          ReadPartitionFormat),
      Both<Input>(
          "manifest", Object(ManifestFields()),
          "Of files: the file that names the items, in its order, in place of a "
          "listing.",
          [](const Input& input) {
            return input.manifest ? WriteFields(ManifestFields(), &*input.manifest)
                                  : nlohmann::json();
          },
          [](const Value& map, Input& input, Target target) {
            ReadObject(map, ManifestFields(), &input.manifest.emplace(), target);
          })
          .Otherwise("a listing"),
      Bound("allowEmpty", &Input::allow_empty, WordsOf<AllowEmpty>(),
            "Whether it may have no item: Never (if not given); Existing, where a file without "
            "rows, or a folder, is there; Missing, also where nothing is, or no file matches, and "
            "in place of an output that has rows.")
          .UnlessInitial()
          .Anew(),
  };
  return fields;
}

const FieldList& SideInputFields() {
  static const FieldList fields = {
      Bound("name", &SideInput::name, PlainName("an input"), "Name that placeholders give.",
            ReadInputName)
          .Required(),
      BoundIn("volume", &SideInput::from, &VolumePath::volume, Text(kMostName),
              "One of spec.volumes."),
      Bound("store", &SideInput::store, Text(kMostName),
            "In place of a volume: one of spec.stores. Each node fetches all of it before init()."),
      BoundIn(
          "path", &SideInput::from, &VolumePath::path, Path(),
          "Folder or file, relative to the volume; below the store's URL the key of one object, or "
          "a prefix of keys, which it always is with a slash at its end. All of it if not given.",
          ReadInputPath)
          .Otherwise("all of the volume or store"),
      Bound("mountPath", &SideInput::mount_path,
            Text(kMostText).With(
                {R"cel(self.matches("^/+[^/:]") && !self.contains(":") && )cel"
                 R"cel(!self.matches("/[.][.](/|$)"))cel",
                 R"(is no place for a folder: write an absolute path without ":" and )"
                 R"("..", as in /models)"}),
            "Where the volume is mounted, absolute; below /mnt if not given.", ReadMountPath)
          .Otherwise("below /mnt")
          .OnlyInCluster(),
  };
  return fields;
}

}  // namespace parallelrun::api::fields
