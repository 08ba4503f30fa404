// `--set spec.path=value`: changes a job's tree before it is checked. Pure.
#pragma once

#include <string>
#include <vector>

#include "api/node.h"
#include "api/problem.h"

namespace parallelrun::api {

// What to write in place of `flag` ("--set FIELD=VALUE"), which sets all of the list or map at
// `path` to one value. `tree`: what stands there, or a bare list or map of what has to.
std::string SetByPieces(const std::string& flag, std::string path, const Node& tree);

// Each override is "FIELD=VALUE"; the value is a YAML scalar ("2" a number, "\"2\"" a string,
// nothing a null, which removes the field). An index one past the end of a list appends. A volume
// has one source: another one that is set takes its place. Problems
// name the flag; a later problem with the value does too (Position::flag).
void ApplyOverrides(const std::vector<std::string>& overrides, Node& root, Problems& problems);

}  // namespace parallelrun::api
