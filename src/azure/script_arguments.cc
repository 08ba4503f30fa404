#include "azure/script_arguments.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "api/enums.h"

namespace parallelrun::azure {
namespace {

// "sideInputs.model" of "inputs.model".
std::string AsSideInput(std::string_view name) {
  constexpr std::string_view kInputs = "inputs.";
  if (!name.starts_with(kInputs)) return "";
  return "sideInputs." + std::string(name.substr(kInputs.size()));
}

// The flags that the driver puts beside the user's, with their values.
std::vector<std::pair<std::string, std::string>> DriversFlags(
    const api::JobSpec& spec, const std::map<std::string, std::string>& paths) {
  const bool appends = spec.output.action == api::OutputAction::kAppendRow;
  std::vector<std::pair<std::string, std::string>> flags;
  if (const auto output = paths.find("output"); output != paths.end()) {
    flags.emplace_back("--output", output->second);
    if (appends) {
      flags.emplace_back("--output_uri_file", output->second + "/" + spec.output.file_name);
    }
  }
  if (appends) flags.emplace_back("--append_row_file_name", spec.output.file_name);
  flags.emplace_back("--logging_level", api::EnumWord(spec.logging_level));
  for (const api::Input& input : spec.inputs) {
    const auto path = paths.find("inputs." + input.name);
    if (path != paths.end()) flags.emplace_back("--input_asset_" + input.name, path->second);
  }
  return flags;
}

std::string_view NameOfFlag(std::string_view argument) {
  return argument.substr(0, argument.find('='));
}

}  // namespace

const api::PlaceholderForms& Placeholders() {
  static const api::PlaceholderForms forms = {
      {.open = "${{", .close = "}}", .otherwise = AsSideInput}};
  return forms;
}

Result<std::vector<std::string>> ScriptArguments(const api::Job& job,
                                                 const std::map<std::string, std::string>& paths) {
  std::vector<std::string> own;
  for (const std::string& argument : job.spec.arguments) {
    Result<std::string> substituted = api::SubstituteArgument(argument, paths, Placeholders());
    if (!substituted.ok()) return substituted.error();
    own.push_back(std::move(*substituted));
  }
  std::vector<std::string> first;
  std::vector<std::string> last;
  for (const auto& [flag, value] : DriversFlags(job.spec, paths)) {
    const auto given = [&name = flag](const std::string& argument) {
      return NameOfFlag(argument) == name;
    };
    const auto abbreviated = [&name = flag](const std::string& argument) {
      return NameOfFlag(argument).starts_with(name);
    };
    if (std::any_of(own.begin(), own.end(), given)) continue;
    const bool shadows = std::any_of(own.begin(), own.end(), abbreviated);
    std::vector<std::string>& part = shadows ? first : last;
    part.insert(part.end(), {flag, value});
  }
  first.insert(first.end(), own.begin(), own.end());
  // Behind the user's "--" there are no flags.
  const auto end = std::find(first.begin(), first.end(), "--");
  first.insert(end, last.begin(), last.end());
  return first;
}

}  // namespace parallelrun::azure
