// The program arguments that Azure ML itself reads from a job's arguments ("--error_threshold 5")
// become fields of the job, in its tree, before anything is parsed, as `--set` does it. They stay
// in the arguments, in their place, since the script sees them too. Pure; any thread. Problems are
// at "spec.arguments[i]".
#pragma once

#include <string>
#include <vector>

#include "api/node.h"
#include "api/problem.h"

namespace parallelrun::azure {

// The fields of the spec that a predefined argument may set. The schema must not fill in defaults
// for them: a field that is there wins over the argument.
const std::vector<std::string>& PredefinedFields();

// Reads spec.arguments of a job's tree, where they are a list, as argparse does: FindFlags, and the
// last of several decides. A field that the job file sets wins, with a warning when the argument
// says something else. An abbreviation whose value does not fit is the script's own flag. Warnings
// also for an unknown --amlbi_ flag and for names that Azure ML reserves; one note for flags
// without a meaning here. What is set stands where its argument stands.
void ApplyPredefined(api::Node& job, api::Problems& problems, std::vector<std::string>& notes);

}  // namespace parallelrun::azure
