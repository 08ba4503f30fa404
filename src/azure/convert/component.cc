#include "azure/convert/component.h"

#include <algorithm>
#include <filesystem>

#include "api/document.h"
#include "azure/convert/common.h"
#include "azure/convert/section.h"

namespace parallelrun::azure {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRegistry = "azureml://registries/";

// "./a.yml" for "file:./a.yml"; empty for what is registered somewhere.
std::string FileOf(const std::string& component) {
  constexpr std::string_view kFile = "file:";
  const std::string path =
      component.starts_with(kFile) ? component.substr(kFile.size()) : component;
  return IsElsewhere(path) ? "" : path;
}

// What stands between `before` and the next "/" of an address.
std::string PartBehind(const std::string& address, std::string_view before) {
  const size_t at = address.find(before);
  if (at == std::string::npos) return "";
  const size_t begin = at + before.size();
  return address.substr(begin, address.find('/', begin) - begin);
}

// What is a component at this address, and how to get it: azureml://registries/R/components/N/
// versions/V, azureml:N:V and azureml:N@LABEL.
struct Registered {
  std::string what;
  std::string mend;
};
Registered WhereRegistered(const std::string& address) {
  std::string name = PartBehind(address, "/components/");
  std::string version = PartBehind(address, "/versions/");
  std::string label = PartBehind(address, "/labels/");
  const std::string registry = PartBehind(address, kRegistry);
  if (registry.empty() && name.empty()) {
    name = address.substr(address.find(':') + 1);
    const size_t end = name.find_first_of(":@");
    if (end != std::string::npos) {
      (name[end] == ':' ? version : label) = name.substr(end + 1);
      name.resize(end);
    }
  }
  const std::string whose =
      registry.empty() ? "registered in a workspace" : "of the registry " + registry;
  return {api::Quoted(address) + " is a component " + whose + ", and not a file here",
          "fetch it: az ml component show --name " + name +
              (version.empty() ? "" : " --version " + version) +
              (label.empty() ? "" : " --label " + label) +
              (registry.empty() ? "" : " --registry-name " + registry) +
              " > component.yml, and write component: ./component.yml here"};
}

// What a step says of a component that is not here: `inputs.data = azureml:digits:1, ...`.
void SayKnown(const api::Node& node, const std::string& path, std::vector<std::string>& known) {
  constexpr size_t kLongestPath = 100;
  if (path.size() > kLongestPath) return;
  if (IsScalar(node)) return known.push_back(path + " = " + api::Quoted(node.text));
  if (node.kind != api::Node::Kind::kMap) return;
  for (const api::Node::Field& field : node.fields) {
    if (path.empty() && (field.key == "component" || field.key == "type")) continue;
    SayKnown(field.value, api::JoinPath(path, field.key), known);
  }
}

// Bounded: somebody else wrote the file.
std::string KnownOf(const api::Node& step) {
  constexpr size_t kMost = 12;
  std::vector<std::string> known;
  SayKnown(step, "", known);
  if (known.empty()) return "";
  std::string text = "; what is known of the step: ";
  for (size_t i = 0; i < std::min(kMost, known.size()); ++i)
    text += (i == 0 ? "" : ", ") + known[i];
  return known.size() > kMost ? text + ", and more" : text;
}

api::Node Scalar(const std::string& text) {
  api::Node node;
  node.kind = api::Node::Kind::kString;
  node.text = text;
  return node;
}

void Set(api::Node& map, const std::string& key, api::Node value) {
  for (api::Node::Field& field : map.fields) {
    if (field.key == key) {
      field.value = std::move(value);
      return;
    }
  }
  map.fields.push_back({key, {}, std::move(value)});
}

// Maps are laid over each other, anything else takes the place of what was there. `in_inputs`: the
// component says of each input what it is, and the step what its value is, often that alone.
api::Node LaidOver(const api::Node& base, const api::Node& over, bool in_inputs) {
  if (over.kind == api::Node::Kind::kNull) return base;
  if (base.kind != api::Node::Kind::kMap) return over;
  api::Node merged = base;
  if (over.kind != api::Node::Kind::kMap) {
    if (!in_inputs) return over;
    const bool data =
        TextOf(base, "type").find('_') != std::string::npos || TextOf(base, "type") == "mltable";
    Set(merged, data ? "path" : "value", over);
    return merged;
  }
  for (const api::Node::Field& field : over.fields) {
    const api::Node* const known = base.Find(field.key);
    const bool inputs = field.key == "inputs" || field.key == "outputs";
    Set(merged, field.key,
        known != nullptr ? LaidOver(*known, field.value, in_inputs || inputs) : field.value);
  }
  return merged;
}

// The code's folder is said as seen from the component's file, and is that of the file when it is
// not said.
void MoveCode(api::Node& component, const fs::path& folder) {
  for (api::Node::Field& field : component.fields) {
    if (field.key != "task" || field.value.kind != api::Node::Kind::kMap) continue;
    const std::string code = TextOf(field.value, "code");
    if (!IsElsewhere(code)) {
      const fs::path path = folder / (code.empty() ? "." : code);
      Set(field.value, "code", Scalar(path.lexically_normal().string()));
    }
  }
}

// The component that the step names or holds; null when it is not here.
api::Document ReadComponent(const api::Node& component, const ConvertOptions& options) {
  api::Document document;
  if (component.kind == api::Node::Kind::kMap) {
    document.job = component;
    return document;
  }
  const std::string file = FileOf(component.text);
  if (file.empty() || !options.read) return document;
  const Result<std::string> text = options.read(file);
  if (!text.ok()) return document;
  document = api::ReadForeignDocument(*text, api::PlainScalars::kTexts);
  if (document.job.kind == api::Node::Kind::kMap)
    MoveCode(document.job, fs::path(file).parent_path());
  return document;
}

bool IsParallelStep(const api::Node& step, const ConvertOptions& options) {
  if (step.kind != api::Node::Kind::kMap) return false;
  if (step.Find("type") != nullptr) return TextOf(step, "type") == "parallel";
  if (step.Find("task") != nullptr) return true;
  const api::Node* const component = step.Find("component");
  if (component == nullptr) return false;
  return TextOf(ReadComponent(*component, options).job, "type") == "parallel";
}

}  // namespace

std::vector<std::string> ParallelSteps(const api::Node& jobs, const ConvertOptions& options) {
  std::vector<std::string> names;
  if (jobs.kind != api::Node::Kind::kMap) return names;
  for (const api::Node::Field& job : jobs.fields) {
    if (IsParallelStep(job.value, options)) names.push_back(job.key);
  }
  return names;
}

bool LoseRegistered(const api::Node& step, const std::string& field, Draft& draft) {
  const bool typed = step.kind == api::Node::Kind::kMap && step.Find("type") != nullptr;
  const std::string component = TextOf(step, "component");
  if (typed || component.empty() || !FileOf(component).empty()) return false;
  const Registered where = WhereRegistered(component);
  draft.Lose(api::JoinPath(field, "component"),
             where.what + ", which may be a parallel one" + KnownOf(step), where.mend);
  return true;
}

std::optional<api::Node> WithComponent(const api::Node& step, const std::string& field,
                                       const ConvertOptions& options, Draft& draft) {
  const api::Node* const component = step.Find("component");
  if (component == nullptr || component->kind == api::Node::Kind::kNull) return step;
  const std::string at = api::JoinPath(field, "component");
  const bool registered = IsScalar(*component) && FileOf(component->text).empty();
  const api::Document document = ReadComponent(*component, options);
  if (api::HasErrors(document.problems)) {
    const api::Problem& first = document.problems.front();
    draft.Refuse(at, component->text + ":" + std::to_string(first.line) + ": " + first.what,
                 first.mend);
    return std::nullopt;
  }
  if (document.job.kind != api::Node::Kind::kMap) {
    if (step.Find("task") != nullptr) return step;  // which says all that a task needs
    if (registered) {
      const Registered where = WhereRegistered(component->text);
      draft.Refuse(at, where.what + KnownOf(step), where.mend);
    } else {
      draft.Refuse(at,
                   "the component is in a file of its own, which is not here: " +
                       api::Quoted(component->text),
                   "put it there, or convert that file");
    }
    return std::nullopt;
  }
  if (document.job.Find("task") == nullptr) {
    draft.Refuse(at, "is a component without a task, which a parallel one has",
                 "give a step whose component is of type parallel");
    return std::nullopt;
  }
  api::Node merged = LaidOver(document.job, step, false);
  std::erase_if(merged.fields, [](const api::Node::Field& one) { return one.key == "component"; });
  return merged;
}

}  // namespace parallelrun::azure
