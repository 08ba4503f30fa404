// Inputs of a parallel job and the bindings that name them: ${{inputs.x}}, ${{parent.inputs.x}}.
#include "azure/convert/bindings.h"

#include <algorithm>
#include <optional>

#include "api/text.h"
#include "azure/convert/section.h"
#include "azure/fill_in.h"

namespace parallelrun::azure {
namespace {

// A type of a value rather than of data.
bool IsLiteralType(const std::string& type) {
  return type == "string" || type == "number" || type == "integer" || type == "boolean";
}

void ReadValue(const api::Node& node, const api::Node* parent_inputs, AzureInput& input,
               Draft& draft, int depth = 0);

// Text that may be a binding to something of the pipeline.
void ReadText(const std::string& text, const api::Node* parent_inputs, AzureInput& input,
              Draft& draft, int depth) {
  const std::string binding = BindingName(text);
  constexpr std::string_view kInputs = "parent.inputs.";
  if (binding.starts_with(kInputs)) {
    const api::Node* const found =
        parent_inputs != nullptr ? parent_inputs->Find(binding.substr(kInputs.size())) : nullptr;
    if (found != nullptr && depth == 0) {
      ReadValue(*found, nullptr, input, draft, 1);
      return;
    }
    draft.Lose(input.field, api::Quoted(text) + " is no input of the pipeline",
               "fill in its volume and path");
    input.is_data = !IsLiteralType(input.type);
  } else if (binding.starts_with("parent.jobs.")) {
    draft.Lose(input.field, api::Quoted(text) + " is the output of another step of the pipeline",
               "let that step write to a volume, and fill in the volume and the path");
    input.is_data = !IsLiteralType(input.type);
    if (input.is_data) input.path = text;
  } else if (input.type.empty() || IsLiteralType(input.type)) {
    input.value = text;
  } else {
    input.path = text;
  }
}

void ReadValue(const api::Node& node, const api::Node* parent_inputs, AzureInput& input,
               Draft& draft, int depth) {
  if (IsScalar(node)) return ReadText(node.text, parent_inputs, input, draft, depth);
  if (node.kind != api::Node::Kind::kMap) return;
  const std::string type = TextOf(node, "type");
  if (input.type.empty()) input.type = type;
  if (input.mode.empty()) input.mode = TextOf(node, "mode");
  input.optional = input.optional || IsTrueWord(TextOf(node, "optional"));
  if (IsLiteralType(input.type)) {
    for (const char* key : {"value", "default"}) {
      if (!input.value.empty()) continue;
      ReadText(TextOf(node, key), parent_inputs, input, draft, depth);
    }
    return;
  }
  input.is_data = true;
  const std::string path = TextOf(node, "path");
  if (!path.empty()) ReadText(path, parent_inputs, input, draft, depth);
}

}  // namespace

std::string BindingName(std::string_view text) {
  text = api::Trim(text);
  if (!text.starts_with("${{") || !text.ends_with("}}")) return "";
  const std::string_view inside = text.substr(3, text.size() - 5);
  if (inside.find('}') != std::string_view::npos) return "";
  return std::string(api::Trim(inside));
}

std::vector<AzureInput> ReadAzureInputs(const api::Node* inputs, const std::string& path,
                                        const api::Node* parent_inputs, Draft& draft) {
  std::vector<AzureInput> read;
  if (inputs == nullptr || inputs->kind != api::Node::Kind::kMap) return read;
  if (parent_inputs != nullptr && parent_inputs->kind != api::Node::Kind::kMap)
    parent_inputs = nullptr;
  for (const api::Node::Field& field : inputs->fields) {
    AzureInput input{.name = field.key, .field = api::JoinPath(path, field.key)};
    ReadValue(field.value, parent_inputs, input, draft);
    read.push_back(std::move(input));
  }
  return read;
}

namespace {

class ArgumentReader {
 public:
  ArgumentReader(const std::string& field, const std::vector<AzureInput>& inputs,
                 const std::map<std::string, std::string>& paths, Draft& draft)
      : field_(field), inputs_(inputs), paths_(paths), draft_(draft) {}

  // "$[[--flag ${{inputs.x}}]]" is there only when the input is.
  std::string OpenOptional(std::string text) {
    size_t at = 0;
    while ((at = text.find("$[[", at)) != std::string::npos) {
      const size_t end = text.find("]]", at);
      if (end == std::string::npos) break;
      const std::string inside = text.substr(at + 3, end - at - 3);
      const bool keep = AllKnown(inside);
      if (!keep) {
        draft_.Lose(field_,
                    api::Quoted(text.substr(at, end + 2 - at)) + " has no value, and is left out",
                    "add it to spec.arguments if you want it");
      }
      text.replace(at, end + 2 - at, keep ? inside : "");
    }
    return text;
  }

  // With a mark for each binding that has no value, which the cutting into words leaves whole.
  std::string Replace(const std::string& text) {
    for (mark_ = "\x1f"; AnyHas(text, mark_);) mark_ += '\x1f';
    std::string out;
    size_t at = 0;
    while (at < text.size()) {
      const size_t open = text.find("${{", at);
      const size_t end = open == std::string::npos ? open : text.find("}}", open);
      if (end == std::string::npos) break;
      out += text.substr(at, open - at);
      const std::string written = text.substr(open, end + 2 - open);
      const std::optional<std::string> value = Find(BindingName(written));
      out += value ? *value : MarkOf(written);
      at = end + 2;
    }
    return out + text.substr(at);
  }

  // The marks in `word`, the argument of that number, become placeholders.
  std::string Open(std::string word, size_t number) {
    std::string belongs;
    for (size_t i = 0; i < open_.size(); ++i) {
      const std::string mark = mark_ + std::to_string(i) + mark_;
      bool found = false;
      for (size_t at = word.find(mark); at != std::string::npos; at = word.find(mark, at)) {
        word.replace(at, mark.size(), kFillIn);
        found = true;
      }
      if (!found) continue;
      open_[i].places.push_back(api::JoinPath("spec.arguments", number));
      belongs += (belongs.empty() ? "" : "; ") + WhatBelongs(open_[i].written);
    }
    if (!belongs.empty()) draft_.open_arguments[number] = belongs;
    return word;
  }

  // Each of them once, wherever it stands.
  void Report() {
    for (const OpenBinding& one : open_) {
      const AzureInput* const input = InputOf(BindingName(one.written));
      std::string where;
      for (const std::string& place : one.places) where += (where.empty() ? "" : ", ") + place;
      const bool optional = input != nullptr && input->optional;
      draft_.Lose(field_,
                  api::Quoted(one.written) +
                      (optional ? " is optional and has no value here, and stands outside of $[[ ]]"
                                : " has no value here"),
                  "replace FILL_IN in " + where + ": " + WhatBelongs(one.written) +
                      (optional ? "; or remove it there, with the name before it" : ""));
    }
  }

 private:
  struct OpenBinding {
    std::string written;
    std::vector<std::string> places;
  };

  // Whether a text that can come into the arguments has `part`.
  bool AnyHas(const std::string& text, const std::string& part) const {
    return text.find(part) != std::string::npos ||
           std::any_of(inputs_.begin(), inputs_.end(),
                       [&](const AzureInput& input) {
                         return input.value.find(part) != std::string::npos;
                       }) ||
           std::any_of(paths_.begin(), paths_.end(), [&](const auto& path) {
             return path.second.find(part) != std::string::npos;
           });
  }

  std::string MarkOf(const std::string& written) {
    const std::string name = BindingName(written);
    size_t i = 0;
    while (i < open_.size() && BindingName(open_[i].written) != name) ++i;
    if (i == open_.size()) open_.push_back({written, {}});
    return mark_ + std::to_string(i) + mark_;
  }

  const AzureInput* InputOf(std::string name) const {
    if (name.ends_with(".path")) name.resize(name.size() - 5);
    for (const AzureInput& input : inputs_) {
      if (name == "inputs." + input.name) return &input;
    }
    return nullptr;
  }

  std::string WhatBelongs(const std::string& written) const {
    const std::string name = BindingName(written);
    if (const AzureInput* const input = InputOf(name)) {
      if (input->is_data) {
        return "$(sideInputs." + input->name + "), with " + input->name + " in spec.sideInputs";
      }
      const std::string kind = input->type.empty() ? "value" : input->type;
      return "the " + kind + " " + input->name;
    }
    if (name.starts_with("outputs.")) return "$(output), or a path below it";
    return "the value of " + api::Quoted(written);
  }

  std::optional<std::string> Find(const std::string& name) const {
    const auto path = paths_.find(name);
    if (path != paths_.end()) return path->second;
    for (const AzureInput& input : inputs_) {
      if (name == "inputs." + input.name && !input.value.empty()) return input.value;
    }
    // ${{inputs.x.path}} is the same as ${{inputs.x}}.
    constexpr std::string_view kPath = ".path";
    if (name.ends_with(kPath)) return Find(name.substr(0, name.size() - kPath.size()));
    return std::nullopt;
  }

  bool AllKnown(const std::string& text) const {
    for (size_t at = text.find("${{"); at != std::string::npos; at = text.find("${{", at + 3)) {
      const size_t end = text.find("}}", at);
      if (end == std::string::npos) return false;
      if (!Find(BindingName(text.substr(at, end + 2 - at)))) return false;
    }
    return true;
  }

  const std::string& field_;
  const std::vector<AzureInput>& inputs_;
  const std::map<std::string, std::string>& paths_;
  Draft& draft_;
  std::string mark_;
  std::vector<OpenBinding> open_;
};

// Words as a POSIX shell cuts them, without any expansion.
std::vector<std::string> Words(const std::string& text) {
  std::vector<std::string> words;
  std::string word;
  bool open = false;
  char quote = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\\' && quote != '\'' && i + 1 < text.size()) {
      word += text[++i];
      open = true;
    } else if (quote != 0) {
      if (c == quote) {
        quote = 0;
      } else {
        word += c;
      }
    } else if (c == '"' || c == '\'') {
      quote = c;
      open = true;
    } else if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      if (open) words.push_back(std::move(word));
      word.clear();
      open = false;
    } else {
      word += c;
      open = true;
    }
  }
  if (open) words.push_back(std::move(word));
  return words;
}

}  // namespace

void ReadProgramArguments(const std::string& text, const std::string& field,
                          const std::vector<AzureInput>& inputs,
                          const std::map<std::string, std::string>& paths, Draft& draft) {
  ArgumentReader reader(field, inputs, paths, draft);
  for (std::string& word : Words(reader.Replace(reader.OpenOptional(text)))) {
    const size_t number = draft.arguments.size();
    draft.arguments.push_back(reader.Open(std::move(word), number));
  }
  reader.Report();
}

std::string ResolveLiteral(const std::string& text, const std::string& field,
                           const std::vector<AzureInput>& inputs, Draft& draft) {
  const std::string binding = BindingName(text);
  if (binding.empty()) return text;
  for (const AzureInput& input : inputs) {
    if (binding == "inputs." + input.name && !input.value.empty()) return input.value;
  }
  draft.Lose(field, api::Quoted(text) + " has no value here",
             "write the field if the default is wrong");
  return "";
}

}  // namespace parallelrun::azure
