// Fields of the spec itself whose values say more than their shapes.
#include <algorithm>

#include "api/parse_parts.h"
#include "api/sizes.h"

namespace parallelrun::api {

void ReadEntryScript(const Value& value, std::string& out) {
  const auto text = value.NonEmptyString();
  if (!text) return;
  out = *text;
  const std::string mend =
      "write a file (score.py), a path (src/score.py) or a module (scoring.main) inside the code";
  if (text->front() == '/') return value.Error(Quoted(*text) + " is absolute", mend);
  const bool is_file = text->ends_with(".py");
  size_t at = 0;
  while (at <= text->size()) {
    const size_t end = std::min(text->find(is_file ? '/' : '.', at), text->size());
    const std::string part = text->substr(at, end - at);
    at = end + 1;
    const bool word = std::all_of(part.begin(), part.end(), [](char c) {
      return c == '_' || static_cast<unsigned char>(c) >= 0x80 || std::isalnum(c) != 0;
    });
    if (part.empty() || part == ".." || (!is_file && !word)) {
      return value.Error(Quoted(*text) + " is no Python file or module", mend);
    }
  }
}

void ReadArguments(const Value& list, std::vector<std::string>& out) {
  constexpr size_t kMaxCharacters = 4096;
  for (const Value& item :
       list.List(kMaxItems, "write at most 100; put more into a file beside the script")) {
    out.push_back(item.String(kMaxCharacters).value_or(""));
  }
}

void ReadPartitionKeys(const Value& list, std::vector<std::string>& out) {
  constexpr size_t kMaxKeys = 32;
  out = ReadNames(list, kMaxKeys, kMaxName);
  if (list.node.kind == Node::Kind::kList && list.node.items.empty()) {
    list.Error("must not be empty", "name a key, or remove it");
  }
}

std::optional<SizeText> ReadSize(const Value& value) {
  const bool is_integer = value.node.kind == Node::Kind::kInteger;
  // An integer is what it is, however it was written (010 is 8).
  const auto text = is_integer ? std::to_string(value.node.integer) : value.String(kMaxQuantity);
  if (!text) return std::nullopt;
  const auto size = ParseSize(*text);
  if (size.ok()) return *size;
  value.Error(size.error().message);
  return std::nullopt;
}

namespace {

void ReadCount(const Value& value, JobSpec& spec) {
  const auto size = ReadSize(value);
  if (!size) return;
  const InputKind kind = spec.inputs.empty() ? InputKind::kFiles : spec.inputs[0].kind;
  if (size->has_unit && kind != InputKind::kTabular) {
    const bool files = kind == InputKind::kFiles;
    return value.Error(Quoted(value.node.text) + " is in bytes, but for " +
                           (files ? "files it counts files" : "jsonLines it counts lines"),
                       "write a plain number, such as 10");
  }
  // With partitionKeys it decides nothing: a job must not differ by it.
  if (spec.partition_keys.empty()) spec.mini_batch_size = size->value;
}

}  // namespace

void ReadMiniBatchSize(const Value& value, JobSpec& spec) {
  ReadCount(value, spec);
  if (spec.partition_keys.empty()) return;
  AddWarning(value.problems, value.path, "has no effect beside partitionKeys, which win",
             "remove one of them");
}

void ReadManagedBy(const Value& value, std::string& out) {
  const auto text = value.NonEmptyString(kMaxName);
  if (!text) return;
  out = *text;
  const size_t slash = text->find('/');
  if (slash == 0 || slash == std::string::npos || slash + 1 == text->size()) {
    value.Error(Quoted(*text) + " does not name a controller",
                "write a domain and a name, such as kueue.x-k8s.io/multikueue");
  }
}

}  // namespace parallelrun::api
