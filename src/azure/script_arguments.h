// What an entry script finds in sys.argv[1:]: the arguments of the job, with ${{inputs.NAME}} as
// Azure ML writes placeholders, and beside them the flags that Azure ML's driver puts there. Pure;
// any thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "api/arguments.h"
#include "api/job.h"
#include "base/error.h"

namespace parallelrun::azure {

// ${{NAME}}, where a side input is among the inputs. "$${{" stands for "${{".
const api::PlaceholderForms& Placeholders();

// spec.arguments with their placeholders replaced by `paths`, as SubstituteArgument does it
// (predefined ones included), and the flags that scripts are known to read: --output,
// --output_uri_file, --append_row_file_name, --logging_level, --input_asset_NAME. They stand last;
// one that the user gives too is left out; one that a parser with abbreviations would take for a
// flag of the user's stands first, so that the user's value wins.
Result<std::vector<std::string>> ScriptArguments(const api::Job& job,
                                                 const std::map<std::string, std::string>& paths);

}  // namespace parallelrun::azure
