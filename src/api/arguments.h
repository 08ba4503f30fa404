// Placeholders in spec.arguments: $(inputs.NAME), $(sideInputs.NAME), $(output); a Dialect
// (parse.h) may write them in other ways too. "$$(" stands for "$(", and so it is with each other
// way. Pure. The result must not be given to a pod's args, where Kubernetes would expand it once
// more.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "api/job.h"
#include "base/error.h"

namespace parallelrun::api {

// Another way to write a placeholder than $(NAME).
struct PlaceholderForm {
  std::string_view open;  // begins with the only "$" in it
  std::string_view close;
  // What else a name may stand for that the job does not have, as `inputs.NAME` for a side input.
  std::string (*otherwise)(std::string_view name) = nullptr;
};
using PlaceholderForms = std::vector<PlaceholderForm>;

// The names that placeholders of this job may have: "inputs.images", "sideInputs.model", "output".
std::vector<std::string> PlaceholderNames(const JobSpec& spec);

// The placeholders in `text`, as written, whose name is not among `names`.
std::vector<std::string> UnknownPlaceholders(std::string_view text,
                                             const std::vector<std::string>& names,
                                             const PlaceholderForms& others = {});

// `text` with each placeholder replaced by the path that `paths` holds for its name; kInvalid,
// with the known ones, for an unknown placeholder.
Result<std::string> SubstituteArgument(std::string_view text,
                                       const std::map<std::string, std::string>& paths,
                                       const PlaceholderForms& others = {});

// The folders that arguments name below the output folder: of "$(output)/models" and of
// "--out=$(output)/models" that one, of "$(output)/a/x.csv", whose last part has a dot, "a".
// Scripts write there without making them first. Relative to the output folder.
std::vector<std::string> FoldersOfOutput(const std::vector<std::string>& arguments,
                                         const PlaceholderForms& others = {});

// Whether a placeholder of the output folder is in `text`.
bool NamesOutput(std::string_view text, const PlaceholderForms& others = {});

// "$(inputs.images), $(output)".
std::string PlaceholderList(const std::vector<std::string>& names);

}  // namespace parallelrun::api
