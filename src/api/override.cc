#include "api/override.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "api/scalar.h"
#include "api/text.h"

namespace parallelrun::api {
namespace {

std::optional<Node> ReadScalar(std::string_view text) {
  const bool in_quotes =
      text.size() >= 2 && (text[0] == '"' || text[0] == '\'') && text.back() == text.front();
  if (!in_quotes) return ResolveScalar(text);
  Node node;
  node.kind = Node::Kind::kString;
  node.text = text.substr(1, text.size() - 2);
  return node;
}

// What --set was given for a list, as the value of its first item.
std::string FirstItem(const std::string& flag) {
  constexpr size_t kMost = 40;
  std::string_view text = std::string_view(flag).substr(flag.find('=') + 1);
  if (text.starts_with('[')) text = text.substr(1, text.find_first_of(",]") - 1);
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  const bool plain =
      !text.empty() && text.size() <= kMost && std::all_of(text.begin(), text.end(), [](char c) {
        return c >= ' ' && c <= '~' && c != '\'' && c != '[' && c != ']';
      });
  const bool opened = text.starts_with('"');  // a comma or a bracket within quotes has cut it
  if (!plain || (opened && (text.size() < 2 || !text.ends_with('"')))) return "VALUE";
  return std::string(text);
}

struct Override {
  Node& root;
  Problems& problems;
  std::shared_ptr<const std::string> flag;

  void Fail(std::string what, std::string mend) const {
    problems.push_back({.what = std::move(what), .mend = std::move(mend), .flag = *flag});
  }

  // The value that `step` names in `node`, made if need be; nullptr (with a problem) if it cannot.
  // `key_at` becomes the position of its key, or nullptr for an item of a list.
  Node* Step(Node& node, const std::string& path, const PathStep& step, Position*& key_at) const {
    key_at = nullptr;
    const Node::Kind wanted = step.key.empty() ? Node::Kind::kList : Node::Kind::kMap;
    if (node.kind == Node::Kind::kNull) {
      node = {};
      node.kind = wanted;
      node.at = {0, 0, flag};
    }
    if (node.kind != wanted) {
      Fail(path + " is " + Describe(node) + ", not " +
               (wanted == Node::Kind::kList ? "a list" : "a map"),
           "");
      return nullptr;
    }
    if (wanted == Node::Kind::kMap) {
      auto field = std::find_if(node.fields.begin(), node.fields.end(),
                                [&](const Node::Field& known) { return known.key == step.key; });
      if (field == node.fields.end()) {
        field = node.fields.insert(field, {step.key, {0, 0, flag}, {}});
      }
      key_at = &field->at;
      return &field->value;
    }
    if (step.index > node.items.size()) {
      Fail(path + " has " + std::to_string(node.items.size()) + " items",
           "the index counts from 0; the next is " + std::to_string(node.items.size()));
      return nullptr;
    }
    if (step.index == node.items.size()) node.items.emplace_back();
    return &node.items[step.index];
  }

  // spec.volumes[0].hostPath.path: the claim that the volume was goes.
  static void KeepOneSource(const std::vector<PathStep>& steps, Node& volume) {
    const std::string& source = steps[3].key;
    if (steps[0].key != "spec" || steps[1].key != "volumes" || source == "name") return;
    std::erase_if(volume.fields, [&](const Node::Field& field) {
      return field.key != "name" && field.key != source;
    });
  }

  void Apply(std::string_view text) const {
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos) {
      return Fail("no \"=\" in it", "write --set spec.FIELD=VALUE");
    }
    const Result<std::vector<PathStep>> steps = ParsePath(text.substr(0, equals));
    if (!steps.ok()) return Fail(steps.error().message, "");
    if (steps->size() < 2 || ((*steps)[0].key != "spec" && (*steps)[0].key != "metadata")) {
      return Fail("only fields below spec and metadata can be set", "write --set spec.FIELD=VALUE");
    }
    const std::string_view written = text.substr(equals + 1);
    std::optional<Node> value = ReadScalar(written);
    if (!value || !IsUtf8(written)) return Fail(Quoted(written) + " cannot be a value", "");
    Node* node = &root;
    std::string path;
    Position* key_at = nullptr;
    for (const PathStep& step : *steps) {
      const bool source = &step - steps->data() == 3 && value->kind != Node::Kind::kNull;
      if (source) KeepOneSource(*steps, *node);
      node = Step(*node, path.empty() ? "the file" : path, step, key_at);
      if (node == nullptr) return;
      path = step.key.empty() ? JoinPath(path, step.index) : JoinPath(path, step.key);
    }
    const bool is_tree = node->kind == Node::Kind::kMap || node->kind == Node::Kind::kList;
    if (is_tree && value->kind != Node::Kind::kNull) {
      return Fail(path + " is " + Describe(*node) + ", and can only be set piece by piece",
                  SetByPieces(*flag, path, *node));
    }
    *node = std::move(*value);
    node->at = {0, 0, flag};
    // Problems are placed at a field's key.
    if (key_at != nullptr) *key_at = node->at;
  }
};

}  // namespace

// Down to the first value that --set can take.
std::string SetByPieces(const std::string& flag, std::string path, const Node& tree) {
  std::string value = tree.kind == Node::Kind::kList ? FirstItem(flag) : "VALUE";
  const char* piece = "item";
  for (const Node* at = &tree; at != nullptr;) {
    if (at->kind == Node::Kind::kList) {
      piece = "item";
      path = JoinPath(path, 0);
      at = at->items.empty() ? nullptr : &at->items.front();
    } else if (at->kind == Node::Kind::kMap) {
      piece = "field";
      value = "VALUE";
      // One with other characters would need a shell's quotes of its own.
      const bool known = !at->fields.empty() && IsLabelName(at->fields.front().key);
      path = JoinPath(path, known ? at->fields.front().key : "FIELD");
      at = known ? &at->fields.front().value : nullptr;
    } else {
      break;
    }
  }
  return fmt::format("set one {} each, as in --set '{}={}'", piece, path, value);
}

void ApplyOverrides(const std::vector<std::string>& overrides, Node& root, Problems& problems) {
  for (const std::string& text : overrides) {
    const Override one{root, problems, std::make_shared<const std::string>("--set " + text)};
    one.Apply(text);
  }
}

}  // namespace parallelrun::api
