// The tree of a job file as read, before it means anything: every value with its place in the
// file. Scalars are what the API server would make of them (scalar.h). Plain data.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace parallelrun::api {

struct Position {
  int line = 0;                             // 1-based; 0: not from a file
  int column = 0;                           // 1-based
  std::shared_ptr<const std::string> flag;  // "--set spec.nodeCount=2", when it came from there
};

struct Node {
  enum class Kind { kNull, kBool, kInteger, kNumber, kString, kList, kMap };
  struct Field;

  Kind kind = Kind::kNull;
  bool boolean = false;
  int64_t integer = 0;
  double number = 0;          // kNumber only; never a whole number that fits int64
  std::string text;           // kString: the value; other scalars: as written
  std::vector<Node> items;    // kList
  std::vector<Field> fields;  // kMap, in file order, keys unique
  Position at;

  // The field's value, or nullptr. A map only.
  const Node* Find(std::string_view key) const;
  nlohmann::json ToJson() const;
};

struct Node::Field {
  std::string key;
  Position at;  // of the key
  Node value;
};

// "a list", "the number 0.5", "the string \"x\"": for messages.
std::string Describe(const Node& node);

// Quoted as in JSON and cut after 60 characters: for messages.
std::string Quoted(std::string_view text);

// One step of a field path: a key, or an index when `key` is empty.
struct PathStep {
  std::string key;
  size_t index = 0;
};

// "spec" + "nodeCount" -> "spec.nodeCount"; keys that are not plain words are written ["a.b/c"].
std::string JoinPath(std::string_view path, std::string_view key);
std::string JoinPath(std::string_view path, size_t index);

// Reads what JoinPath writes; also "\." for a dot within a key. kInvalid otherwise.
Result<std::vector<PathStep>> ParsePath(std::string_view path);

// Where `path` stands in the tree: its key (or list item), or that of its deepest parent present.
Position Locate(const Node& root, std::string_view path);

}  // namespace parallelrun::api
