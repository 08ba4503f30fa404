#include "api/arguments.h"

#include <algorithm>
#include <filesystem>
#include <functional>

#include "api/enums.h"
#include "api/node.h"
#include "api/text.h"

namespace parallelrun::api {
namespace {

// Calls `literal` for text and `placeholder` for each name with how it was written.
void Scan(std::string_view text, const std::function<void(std::string_view)>& literal,
          const std::function<void(std::string_view, bool, std::string_view)>& placeholder) {
  size_t at = 0;
  while (at < text.size()) {
    const size_t dollar = std::min(text.find('$', at), text.size());
    literal(text.substr(at, dollar - at));
    at = dollar;
    const std::string_view rest = text.substr(at);
    if (rest.empty()) break;
    if (rest.starts_with("$$(") || rest.starts_with("$${{")) {
      const size_t size = rest[2] == '(' ? 3 : 4;
      literal(rest.substr(1, size - 1));
      at += size;
      continue;
    }
    const bool azure = rest.starts_with("${{");
    const size_t open = azure ? 3 : 2;
    const size_t close = azure || rest.starts_with("$(") ? rest.find(azure ? "}}" : ")", open)
                                                         : std::string_view::npos;
    if (close == std::string_view::npos) {
      literal(rest.substr(0, 1));
      ++at;
      continue;
    }
    const size_t size = close + (azure ? 2 : 1);
    placeholder(Trim(rest.substr(open, close - open)), azure, rest.substr(0, size));
    at += size;
  }
}

// The name by which `names` knows a placeholder, or "".
std::string Resolve(std::string_view name, bool azure, const std::vector<std::string>& names) {
  const auto known = [&](const std::string& candidate) {
    return std::find(names.begin(), names.end(), candidate) != names.end();
  };
  if (known(std::string(name))) return std::string(name);
  if (azure && name.starts_with("inputs.")) {
    const std::string side = "sideInputs." + std::string(name.substr(7));
    if (known(side)) return side;
  }
  return "";
}

// The flags that Azure ML's driver puts beside the user's, with their values.
std::vector<std::pair<std::string, std::string>> SystemFlags(
    const JobSpec& spec, const std::map<std::string, std::string>& paths) {
  std::vector<std::pair<std::string, std::string>> flags;
  if (const auto output = paths.find("output"); output != paths.end()) {
    flags.emplace_back("--output", output->second);
    if (spec.output.action == OutputAction::kAppendRow) {
      flags.emplace_back("--output_uri_file", output->second + "/" + spec.output.file_name);
    }
  }
  if (spec.output.action == OutputAction::kAppendRow) {
    flags.emplace_back("--append_row_file_name", spec.output.file_name);
  }
  flags.emplace_back("--logging_level", EnumWord(spec.logging_level));
  for (const Input& input : spec.inputs) {
    const auto path = paths.find("inputs." + input.name);
    if (path != paths.end()) flags.emplace_back("--input_asset_" + input.name, path->second);
  }
  return flags;
}

std::string_view NameOfFlag(std::string_view argument) {
  return argument.substr(0, argument.find('='));
}

}  // namespace

std::vector<std::string> PlaceholderNames(const JobSpec& spec) {
  std::vector<std::string> names;
  for (const Input& input : spec.inputs) names.push_back("inputs." + input.name);
  for (const SideInput& input : spec.side_inputs) names.push_back("sideInputs." + input.name);
  names.emplace_back("output");
  return names;
}

std::vector<std::string> UnknownPlaceholders(std::string_view text,
                                             const std::vector<std::string>& names) {
  std::vector<std::string> unknown;
  Scan(
      text, [](std::string_view) {},
      [&](std::string_view name, bool azure, std::string_view written) {
        if (Resolve(name, azure, names).empty()) unknown.emplace_back(written);
      });
  return unknown;
}

Result<std::string> SubstituteArgument(std::string_view text,
                                       const std::map<std::string, std::string>& paths) {
  std::vector<std::string> names;
  for (const auto& [name, path] : paths) names.push_back(name);
  const std::vector<std::string> unknown = UnknownPlaceholders(text, names);
  if (!unknown.empty()) {
    return Error{Code::kInvalid, "unknown placeholder " + Quoted(unknown[0]) + ": known are " +
                                     PlaceholderList(names)};
  }
  std::string out;
  Scan(
      text, [&](std::string_view literal) { out += literal; },
      [&](std::string_view name, bool azure, std::string_view) {
        out += paths.at(Resolve(name, azure, names));
      });
  return out;
}

Result<std::vector<std::string>> ScriptArguments(const Job& job,
                                                 const std::map<std::string, std::string>& paths) {
  std::vector<std::string> own;
  for (const std::string& argument : job.spec.arguments) {
    Result<std::string> substituted = SubstituteArgument(argument, paths);
    if (!substituted.ok()) return substituted.error();
    own.push_back(std::move(*substituted));
  }
  std::vector<std::string> first;
  std::vector<std::string> last;
  for (const auto& [flag, value] : SystemFlags(job.spec, paths)) {
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

std::vector<std::string> FoldersOfOutput(const std::vector<std::string>& arguments) {
  constexpr std::string_view kOutput = "$(output)/";
  std::vector<std::string> folders;
  for (const std::string& argument : arguments) {
    const size_t equals = argument.starts_with("--") ? argument.find('=') : std::string::npos;
    std::string_view value = argument;
    if (equals != std::string::npos) value.remove_prefix(equals + 1);
    if (!value.starts_with(kOutput)) continue;
    while (value.ends_with('/')) value.remove_suffix(1);
    if (value.size() <= kOutput.size()) continue;
    const std::filesystem::path path =
        std::filesystem::path(value.substr(kOutput.size())).lexically_normal();
    const bool below = path.is_relative() && !path.empty() && *path.begin() != "..";
    const bool file = path.filename().native().find('.') != std::string::npos;
    const std::filesystem::path folder = file ? path.parent_path() : path;
    if (below && !folder.empty()) folders.push_back(folder);
  }
  return folders;
}

std::string PlaceholderList(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "$(" : ", $(") + name + ")";
  return list;
}

}  // namespace parallelrun::api
