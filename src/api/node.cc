#include "api/node.h"

#include <algorithm>
#include <cctype>

#include "base/escape.h"

namespace parallelrun::api {
namespace {

bool IsWordByte(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
}

constexpr size_t kMaxIndex = 100000;

// Reads "[12]" or "[\"key\"]" at `at`, which is moved behind it.
bool ParseBracket(std::string_view path, size_t& at, PathStep& step) {
  ++at;
  if (at < path.size() && path[at] == '"') {
    const size_t end = path.find("\"]", at + 1);
    if (end == std::string_view::npos || end == at + 1) return false;
    step.key = path.substr(at + 1, end - at - 1);
    at = end + 2;
    return true;
  }
  const size_t first = at;
  size_t index = 0;
  while (at < path.size() && path[at] >= '0' && path[at] <= '9' && index < kMaxIndex) {
    index = index * 10 + static_cast<size_t>(path[at++] - '0');
  }
  if (at == first || at >= path.size() || path[at] != ']') return false;
  ++at;
  step.index = index;
  return true;
}

}  // namespace

const Node* Node::Find(std::string_view key) const {
  for (const Field& field : fields) {
    if (field.key == key) return &field.value;
  }
  return nullptr;
}

nlohmann::json Node::ToJson() const {
  switch (kind) {
    case Kind::kNull: return nullptr;
    case Kind::kBool: return boolean;
    case Kind::kInteger: return integer;
    case Kind::kNumber: return number;
    case Kind::kString: return text;
    case Kind::kList: {
      nlohmann::json list = nlohmann::json::array();
      for (const Node& item : items) list.push_back(item.ToJson());
      return list;
    }
    case Kind::kMap: {
      nlohmann::json map = nlohmann::json::object();
      for (const Field& field : fields) map[field.key] = field.value.ToJson();
      return map;
    }
  }
  return nullptr;
}

std::string Quoted(std::string_view text) {
  constexpr size_t kMost = 60;
  std::string shown(Front(text, kMost));
  if (text.size() > kMost) shown += "...";
  return nlohmann::json(shown).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string Describe(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kNull: return "null";
    case Node::Kind::kBool: return "the boolean " + node.text;
    case Node::Kind::kInteger:
    case Node::Kind::kNumber: return "the number " + node.text;
    case Node::Kind::kString: return "the string " + Quoted(node.text);
    case Node::Kind::kList: return "a list";
    case Node::Kind::kMap: return "a map";
  }
  return "";
}

std::string JoinPath(std::string_view path, std::string_view key) {
  if (key.empty() || !std::all_of(key.begin(), key.end(), IsWordByte)) {
    return std::string(path) + "[\"" + std::string(key) + "\"]";
  }
  return path.empty() ? std::string(key) : std::string(path) + "." + std::string(key);
}

std::string JoinPath(std::string_view path, size_t index) {
  return std::string(path) + "[" + std::to_string(index) + "]";
}

Result<std::vector<PathStep>> ParsePath(std::string_view path) {
  const Error error{Code::kInvalid, Quoted(path) + " is not a field path: write it as in " +
                                        "spec.inputs[0].files.pattern or " +
                                        "spec.resources.limits[\"nvidia.com/gpu\"]"};
  std::vector<PathStep> steps;
  size_t at = 0;
  while (at < path.size()) {
    PathStep step;
    if (path[at] == '[') {
      if (!ParseBracket(path, at, step)) return error;
    } else {
      if (!steps.empty() && path[at++] != '.') return error;
      while (at < path.size() && path[at] != '.' && path[at] != '[') {
        if (path[at] == '\\' && at + 1 < path.size()) ++at;
        step.key += path[at++];
      }
      if (step.key.empty()) return error;
    }
    steps.push_back(std::move(step));
  }
  if (steps.empty()) return error;
  return steps;
}

Position Locate(const Node& root, std::string_view path) {
  Position best = root.at;
  const Result<std::vector<PathStep>> steps = ParsePath(path);
  if (!steps.ok()) return best;
  const Node* node = &root;
  for (const PathStep& step : *steps) {
    const Node* next = nullptr;
    if (!step.key.empty()) {
      for (const Node::Field& field : node->fields) {
        if (field.key == step.key) {
          next = &field.value;
          best = field.at;
          break;
        }
      }
    } else if (step.index < node->items.size()) {
      next = &node->items[step.index];
      best = next->at;
    }
    if (next == nullptr) break;
    node = next;
  }
  return best;
}

}  // namespace parallelrun::api
