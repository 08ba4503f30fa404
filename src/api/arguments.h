// Placeholders in spec.arguments: $(inputs.NAME), $(sideInputs.NAME), $(output), and Azure ML's
// ${{inputs.NAME}}, which finds side inputs too. "$$(" and "$${{" stand for "$(" and "${{".
// Pure. The result must not be given to a pod's args, where Kubernetes would expand it once more.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "api/job.h"
#include "base/error.h"

namespace parallelrun::api {

// The names that placeholders of this job may have: "inputs.images", "sideInputs.model", "output".
std::vector<std::string> PlaceholderNames(const JobSpec& spec);

// The placeholders in `text`, as written, whose name is not among `names`.
std::vector<std::string> UnknownPlaceholders(std::string_view text,
                                             const std::vector<std::string>& names);

// `text` with each placeholder replaced by the path that `paths` holds for its name; kInvalid,
// with the known ones, for an unknown placeholder.
Result<std::string> SubstituteArgument(std::string_view text,
                                       const std::map<std::string, std::string>& paths);

// What the entry script finds in sys.argv[1:]: spec.arguments with their placeholders replaced
// (predefined ones included), and the flags of Azure ML's own that scripts are known to read:
// --output, --output_uri_file, --append_row_file_name, --logging_level, --input_asset_NAME. They
// stand last; one that the user gives too is left out; one that a parser with abbreviations would
// take for a flag of the user's stands first, so that the user's value wins. `paths` as above.
Result<std::vector<std::string>> ScriptArguments(const Job& job,
                                                 const std::map<std::string, std::string>& paths);

// The folders that arguments name below the output folder: of "$(output)/models" and of
// "--out=$(output)/models" that one, of "$(output)/a/x.csv", whose last part has a dot, "a".
// Scripts expect them to be there, as the outputs of a step are on Azure ML. Relative to the output
// folder.
std::vector<std::string> FoldersOfOutput(const std::vector<std::string>& arguments);

// "$(inputs.images), $(output)".
std::string PlaceholderList(const std::vector<std::string>& names);

}  // namespace parallelrun::api
