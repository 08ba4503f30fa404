// Internal to src/api: what the rules about several fields of a job have in common. Pure.
#pragma once

#include <string>

#include "api/job.h"
#include "api/parse.h"

namespace parallelrun::api {

// Of an output that lies in an input.
inline constexpr char kOutside[] = "write a path outside of it, or narrow the input's path";

// "spec.inputs[0].files".
std::string InputPath(const JobSpec& spec, size_t i);

// A field below which something failed to be read already is not judged again.
bool HasProblemBelow(const Problems& problems, const std::string& field);

// check_volumes.cc: every volume that is named is there and has a source, what is written stays,
// and nothing is written where something else is.
void CheckVolumes(const JobSpec& spec, Target target, Problems& problems);

}  // namespace parallelrun::api
