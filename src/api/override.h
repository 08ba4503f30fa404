// `--set spec.path=value`: changes a job's tree before it is checked. Pure.
#pragma once

#include <string>
#include <vector>

#include "api/node.h"
#include "api/problem.h"

namespace parallelrun::api {

// Each override is "FIELD=VALUE"; the value is a YAML scalar ("2" a number, "\"2\"" a string,
// nothing a null, which removes the field). An index one past the end of a list appends. A volume
// has one source: another one that is set takes its place. Problems
// name the flag; a later problem with the value does too (Position::flag).
void ApplyOverrides(const std::vector<std::string>& overrides, Node& root, Problems& problems);

}  // namespace parallelrun::api
