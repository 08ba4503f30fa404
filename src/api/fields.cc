#include "api/fields.h"

#include <spdlog/fmt/fmt.h>
#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "api/override.h"
#include "api/text.h"

namespace parallelrun::api {
namespace {

constexpr char kLabelMend[] =
    "write at most 63 letters, digits, \"-\", \"_\" and \".\", a letter or digit first and last; "
    "in front of a name may stand a domain and \"/\"";

std::string Shown(double number) {
  if (number == static_cast<double>(static_cast<int64_t>(number))) {
    return std::to_string(static_cast<int64_t>(number));
  }
  return fmt::format("{}", number);
}

std::string RangeText(double least, double most) {
  constexpr double kNoLimit = std::numeric_limits<int32_t>::max();
  if (most >= kNoLimit) return "must be at least " + Shown(least);
  return "must be from " + Shown(least) + " to " + Shown(most);
}

bool IsScalar(const Node& node) {
  return node.kind == Node::Kind::kBool || node.kind == Node::Kind::kInteger ||
         node.kind == Node::Kind::kNumber;
}

Node Bare(Node::Kind kind) {
  Node node;
  node.kind = kind;
  return node;
}

}  // namespace

void AddError(Problems& problems, std::string field, std::string what, std::string mend) {
  problems.push_back({.field = std::move(field), .what = std::move(what), .mend = std::move(mend)});
}

void AddWarning(Problems& problems, std::string field, std::string what, std::string mend) {
  problems.push_back({.severity = Problem::Severity::kWarning,
                      .field = std::move(field),
                      .what = std::move(what),
                      .mend = std::move(mend)});
}

void Value::Error(std::string what, std::string mend) const {
  AddError(problems, path, std::move(what), std::move(mend));
}

std::optional<std::string> Value::String(size_t most) const {
  if (IsScalar(node)) {
    Error("write \"" + node.text + "\" in quotes",
          "without them it is " + Describe(node) +
              (node.at.flag ? "; a shell takes one pair away: '\"" + node.text + "\"'" : ""));
    return std::nullopt;
  }
  if (node.kind != Node::Kind::kString) {
    Error("must be a string, not " + Describe(node));
    return std::nullopt;
  }
  if (node.text.find('\0') != std::string::npos) {
    Error("holds a NUL character", "remove it");
    return std::nullopt;
  }
  if (Utf8Length(node.text) > most) {
    Error("is longer than " + std::to_string(most) + " characters");
    return std::nullopt;
  }
  return node.text;
}

std::optional<std::string> Value::NonEmptyString(size_t most) const {
  std::optional<std::string> text = String(most);
  if (text && text->empty()) {
    Error("must not be empty");
    return std::nullopt;
  }
  return text;
}

std::optional<bool> Value::Bool() const {
  if (node.kind == Node::Kind::kBool) return node.boolean;
  Error("must be true or false, not " + Describe(node),
        node.kind == Node::Kind::kString ? "write true or false, without quotes" : "");
  return std::nullopt;
}

std::optional<int64_t> Value::Integer(int64_t least, int64_t most) const {
  if (node.kind != Node::Kind::kInteger) {
    // A number beyond 64 bits is out of any range.
    const bool number_in_quotes = node.kind == Node::Kind::kString && !node.text.empty() &&
                                  std::all_of(node.text.begin(), node.text.end(),
                                              [](char c) { return c >= '0' && c <= '9'; });
    Error("must be an integer, not " + Describe(node),
          number_in_quotes ? "write " + node.text + " without quotes" : "");
    return std::nullopt;
  }
  if (node.integer < least || node.integer > most) {
    Error(node.text + " is out of range",
          RangeText(static_cast<double>(least), static_cast<double>(most)));
    return std::nullopt;
  }
  return node.integer;
}

std::optional<double> Value::Number(double least, double most) const {
  if (node.kind != Node::Kind::kInteger && node.kind != Node::Kind::kNumber) {
    Error("must be a number, not " + Describe(node));
    return std::nullopt;
  }
  const double number =
      node.kind == Node::Kind::kInteger ? static_cast<double>(node.integer) : node.number;
  if (number < least || number > most) {
    Error(node.text + " is out of range", RangeText(least, most));
    return std::nullopt;
  }
  return number;
}

std::optional<size_t> Value::EnumIndex(const std::vector<std::string>& words) const {
  const std::optional<std::string> word = ReadWord(*this, words);
  if (!word) return std::nullopt;
  return static_cast<size_t>(std::find(words.begin(), words.end(), *word) - words.begin());
}

std::vector<Value> Value::List(size_t most, const std::string& mend) const {
  std::vector<Value> items;
  if (node.kind != Node::Kind::kList) {
    Error("must be a list, not " + Describe(node),
          node.at.flag ? SetByPieces(*node.at.flag, path, Bare(Node::Kind::kList))
                       : "write each item as \"- item\", or [item, item]");
    return items;
  }
  if (node.items.size() > most) {
    Error(std::to_string(node.items.size()) + " items are too many",
          mend.empty() ? "write at most " + std::to_string(most) : mend);
    return items;
  }
  for (size_t i = 0; i < node.items.size(); ++i) {
    items.push_back(Within(node.items[i], JoinPath(path, i)));
  }
  return items;
}

bool Value::IsMap() const {
  if (node.kind == Node::Kind::kMap) return true;
  Error("must be a map of fields, not " + Describe(node),
        node.at.flag ? SetByPieces(*node.at.flag, path, Bare(Node::Kind::kMap)) : "");
  return false;
}

Fields::Fields(const Value& map)
    : node_(map.IsMap() ? &map.node : nullptr),
      path_(map.path),
      problems_(map.problems),
      mend_(map.mend_name) {}

std::optional<Value> Fields::Take(const std::string& name) {
  // What is looked at twice is known once: the list of what is known is shown.
  if (std::find(known_.begin(), known_.end(), name) == known_.end()) known_.push_back(name);
  const Node* const found = node_ != nullptr ? node_->Find(name) : nullptr;
  if (found == nullptr || found->kind == Node::Kind::kNull) return std::nullopt;
  return Value{*found, PathOf(name), problems_, mend_};
}

std::optional<Value> Fields::Require(const std::string& name, const std::string& mend) {
  std::optional<Value> value = Take(name);
  if (!value && node_ != nullptr) AddError(problems_, PathOf(name), "is required", mend);
  return value;
}

std::vector<std::string> Fields::Present(const std::vector<std::string>& names) const {
  std::vector<std::string> present;
  for (const std::string& name : names) {
    const Node* const found = node_ != nullptr ? node_->Find(name) : nullptr;
    if (found != nullptr && found->kind != Node::Kind::kNull) present.push_back(name);
  }
  return present;
}

void Fields::Finish() {
  if (node_ == nullptr) return;
  constexpr size_t kFewNames = 12;
  for (const Node::Field& field : node_->fields) {
    if (std::find(known_.begin(), known_.end(), field.key) != known_.end()) continue;
    std::string mend = mend_ != nullptr && *mend_ ? (*mend_)(field.key) : "";
    const bool same_but_spelling = std::any_of(
        known_.begin(), known_.end(),
        [&](const std::string& known) { return Squashed(known) == Squashed(field.key); });
    if (mend.empty() || same_but_spelling) {
      const std::string closest = ClosestName(field.key, known_);
      if (!closest.empty()) {
        mend = "did you mean " + closest + "?";
      } else if (mend.empty() && known_.size() <= kFewNames) {
        mend = "known here: " + OrList(known_);
      }
    }
    AddError(problems_, PathOf(field.key), "unknown field", std::move(mend));
  }
}

void Fields::Error(std::string what, std::string mend) const {
  AddError(problems_, path_, std::move(what), std::move(mend));
}

void Fields::To(const std::string& name, std::string& out, size_t most) {
  if (const auto value = Take(name)) out = value->NonEmptyString(most).value_or(out);
}

std::optional<std::string> ReadWord(const Value& value, const std::vector<std::string>& words) {
  const std::optional<std::string> text = value.String();
  if (!text) return std::nullopt;
  if (std::find(words.begin(), words.end(), *text) != words.end()) return text;
  const std::string closest = ClosestName(*text, words);
  value.Error(Quoted(*text) + " is not one of " + OrList(words),
              closest.empty() ? "" : "write " + closest);
  return std::nullopt;
}

std::vector<std::string> ReadNames(const Value& list, size_t most_items, size_t most_characters) {
  std::vector<std::string> names;
  for (const Value& item : list.List(most_items)) {
    const std::optional<std::string> name = item.NonEmptyString(most_characters);
    if (!name) continue;
    if (std::find(names.begin(), names.end(), *name) != names.end()) {
      item.Error(Quoted(*name) + " is given twice", "keep one of them");
      continue;
    }
    names.push_back(*name);
  }
  return names;
}

std::map<std::string, std::string> ReadTexts(const Value& map, size_t most_characters) {
  std::map<std::string, std::string> texts;
  if (!map.IsMap()) return texts;
  for (const Node::Field& field : map.node.fields) {
    const Value value = map.Within(field.value, JoinPath(map.path, field.key));
    if (const auto text = value.String(most_characters)) texts[field.key] = *text;
  }
  return texts;
}

std::map<std::string, std::string> ReadLabels(const Value& map) {
  const std::map<std::string, std::string> labels = ReadTexts(map, kMaxName);
  for (const auto& [name, text] : labels) {
    const std::string field = JoinPath(map.path, name);
    if (!IsLabelName(name)) {
      AddError(map.problems, field, Quoted(name) + " cannot name a label", kLabelMend);
    }
    if (!IsLabelValue(text)) {
      AddError(map.problems, field, Quoted(text) + " cannot be a label's value", kLabelMend);
    }
  }
  return labels;
}

std::map<std::string, std::string> ReadAnnotations(const Value& map, size_t most_characters) {
  constexpr size_t kMostBytes = 1 << 18;
  const std::map<std::string, std::string> annotations = ReadTexts(map, most_characters);
  size_t bytes = 0;
  for (const auto& [name, text] : annotations) {
    bytes += name.size() + text.size();
    // Capital letters, which no domain has, are let through in these.
    std::string lower = name;
    std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    if (!IsLabelName(lower)) {
      AddError(map.problems, JoinPath(map.path, name), Quoted(name) + " cannot name an annotation",
               kLabelMend);
    }
  }
  if (bytes > kMostBytes) map.Error("are larger than 256 KiB together");
  return annotations;
}

nlohmann::json WithoutNulls(const Node& node) {
  if (node.kind == Node::Kind::kList) {
    nlohmann::json list = nlohmann::json::array();
    for (const Node& item : node.items) list.push_back(WithoutNulls(item));
    return list;
  }
  if (node.kind != Node::Kind::kMap) return node.ToJson();
  nlohmann::json map = nlohmann::json::object();
  for (const Node::Field& field : node.fields) {
    if (field.value.kind != Node::Kind::kNull) map[field.key] = WithoutNulls(field.value);
  }
  return map;
}

std::optional<std::string> ReadRelativePath(const Value& value) {
  const std::optional<std::string> text = value.String();
  if (!text) return std::nullopt;
  if (text->starts_with('/')) {
    const size_t first = text->find_first_not_of('/');
    const std::string rest = first == std::string::npos ? "." : text->substr(first);
    value.Error(Quoted(*text) + " is absolute, but paths are relative to the volume",
                "write " + rest);
    return std::nullopt;
  }
  if (!SchemeOf(*text).empty()) {
    value.Error("is a URL, but paths are relative to the volume",
                "name what is in a store as one: stores: [{name: data, url: URL}], and store: data "
                "in place of the volume");
    return std::nullopt;
  }
  std::string path;
  size_t at = 0;
  while (at <= text->size()) {
    const size_t end = std::min(text->find('/', at), text->size());
    const std::string part = text->substr(at, end - at);
    at = end + 1;
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      value.Error(Quoted(*text) + " leaves the volume with \"..\"", "write the path without it");
      return std::nullopt;
    }
    if (std::any_of(part.begin(), part.end(),
                    [](char c) { return static_cast<unsigned char>(c) < 0x20; })) {
      value.Error(Quoted(*text) + " holds a control character", "remove it");
      return std::nullopt;
    }
    path += (path.empty() ? "" : "/") + part;
  }
  return path.empty() ? "." : path;
}

}  // namespace parallelrun::api
