// Writes a tree as block YAML that every reader reads back unchanged: text is quoted unless it
// cannot be taken for anything else. Nulls in maps are left out. Pure.
#pragma once

#include <string>

#include "api/node.h"

namespace parallelrun::api {

std::string BlockYaml(const Node& node);

// One text on one line: quoted unless it cannot be taken for anything else, as `off` would be for a
// boolean.
std::string YamlText(const std::string& text);

// Nodes without a position.
Node TextNode(std::string text);
Node MapNode(std::vector<Node::Field> fields);

}  // namespace parallelrun::api
