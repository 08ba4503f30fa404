// Writes YAML that every reader reads back unchanged: a tree in blocks, or texts for who lays out
// the rest. What no YAML file may hold is escaped, and bytes that are no UTF-8 become U+FFFD. Pure.
#pragma once

#include <string>
#include <vector>

#include "api/node.h"

namespace parallelrun::api {

// Text is quoted unless it cannot be taken for anything else. Nulls in maps are left out.
std::string BlockYaml(const Node& node);

// One text on one line: quoted unless it cannot be taken for anything else, as `off` would be for a
// boolean.
std::string YamlText(const std::string& text);

// The same, always quoted; and a list of such.
std::string QuotedYaml(const std::string& text);
std::string QuotedYaml(const std::vector<std::string>& texts);

// Nodes without a position.
Node TextNode(std::string text);
Node MapNode(std::vector<Node::Field> fields);

}  // namespace parallelrun::api
