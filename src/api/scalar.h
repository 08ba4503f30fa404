// What a YAML scalar without quotes means, as the API server reads it (YAML 1.1 in the dialect of
// sigs.k8s.io/yaml: `yes` is a boolean, `010` is 8, `1e3` is the integer 1000). kubectl and this
// program must read one file the same way; tests/unit/api/document_test.cc holds the table.
#pragma once

#include <optional>
#include <string_view>

#include "api/node.h"

namespace parallelrun::api {

// The value of plain text: null, boolean, integer, number or string. nullopt for infinity and
// not-a-number, which JSON cannot carry.
std::optional<Node> ResolveScalar(std::string_view text);

// A node for a number: an integer when it is a whole number that fits, as the API server does.
Node NumberNode(double value, std::string_view text);

}  // namespace parallelrun::api
