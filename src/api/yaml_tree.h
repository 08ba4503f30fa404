// Internal to src/api: the YAML parser's events as trees, one for each document of a text.
#pragma once

#include <string_view>
#include <vector>

#include "api/document.h"
#include "api/node.h"
#include "api/problem.h"

namespace parallelrun::api {

struct YamlTree {
  Node root;
  Problems problems;  // duplicate keys
};

// The documents of `text` that are not empty, within the bounds of document.h. The first problem
// that ends the reading is returned alone.
struct YamlTrees {
  std::vector<YamlTree> trees;
  Problems problems;
};
YamlTrees ReadYamlTrees(std::string_view text, PlainScalars plain);

}  // namespace parallelrun::api
