// The program arguments that Azure ML itself reads from a job's arguments ("--error_threshold 5"):
// found, checked, and made fields of the job. They stay in the arguments, in their place, since
// the script sees them too. Pure; any thread. Problems are at "spec.arguments[i]".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/job.h"
#include "api/problem.h"

namespace parallelrun {

// The fields of the spec that a predefined argument may set. The schema must not fill in defaults
// for them: a field that is there wins over the argument.
const std::vector<std::string>& PredefinedFields();

// Reads spec.arguments as argparse does: "--flag value" and "--flag=value", unambiguous
// abbreviations (with a warning), the last of several, nothing after "--". `present` names the
// fields that the job file sets; they win, with a warning when the argument says something else.
// An abbreviation whose value does not fit is the script's own flag. Warnings also for an unknown
// --amlbi_ flag and for names that Azure ML reserves; one note for flags without a meaning here.
void ApplyPredefined(const std::vector<std::string>& present, JobSpec& spec, Problems& problems,
                     std::vector<std::string>& notes);

}  // namespace parallelrun
