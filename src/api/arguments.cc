#include "api/arguments.h"

#include <algorithm>
#include <filesystem>
#include <functional>

#include "api/node.h"
#include "api/text.h"

namespace parallelrun::api {
namespace {

constexpr char kOutput[] = "output";

// A placeholder in a text.
struct Written {
  std::string_view name;
  const PlaceholderForm& form;
  std::string_view all;  // with what is around the name
};

// Its own way first.
PlaceholderForms WithOwn(const PlaceholderForms& others) {
  PlaceholderForms all = {{.open = "$(", .close = ")"}};
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

// Calls `literal` for text, and `placeholder` for each placeholder.
void Scan(std::string_view text, const PlaceholderForms& others,
          const std::function<void(std::string_view)>& literal,
          const std::function<void(const Written&)>& placeholder) {
  const PlaceholderForms forms = WithOwn(others);
  size_t at = 0;
  while (at < text.size()) {
    const size_t dollar = std::min(text.find('$', at), text.size());
    literal(text.substr(at, dollar - at));
    at = dollar;
    const std::string_view rest = text.substr(at);
    if (rest.empty()) break;
    size_t read = 0;
    for (const PlaceholderForm& form : forms) {
      if (rest.substr(1).starts_with(form.open)) {
        literal(form.open);
        read = 1 + form.open.size();
        break;
      }
      const size_t open = form.open.size();
      const size_t close =
          rest.starts_with(form.open) ? rest.find(form.close, open) : std::string_view::npos;
      if (close == std::string_view::npos) continue;
      read = close + form.close.size();
      placeholder({Trim(rest.substr(open, close - open)), form, rest.substr(0, read)});
      break;
    }
    if (read == 0) {
      literal(rest.substr(0, 1));
      read = 1;
    }
    at += read;
  }
}

// The name by which `names` knows a placeholder, or "".
std::string Resolve(const Written& written, const std::vector<std::string>& names) {
  const auto known = [&](const std::string& candidate) {
    return std::find(names.begin(), names.end(), candidate) != names.end();
  };
  if (known(std::string(written.name))) return std::string(written.name);
  if (written.form.otherwise == nullptr) return "";
  const std::string other = written.form.otherwise(written.name);
  return known(other) ? other : "";
}

// What a text names below the output folder: "models" of "$(output)/models/", "" of another text.
std::string BelowOutput(std::string_view text, const PlaceholderForms& others) {
  bool begins = false;  // with the output's
  bool other = false;
  std::string below;
  Scan(
      text, others, [&](std::string_view literal) { below += literal; },
      [&](const Written& written) {
        const bool output = Resolve(written, {kOutput}) == kOutput;
        other |= begins || !below.empty() || !output;
        begins = true;
      });
  if (!begins || other || !below.starts_with('/')) return "";
  while (below.ends_with('/')) below.pop_back();
  return below.empty() ? "" : below.substr(1);
}

}  // namespace

std::vector<std::string> PlaceholderNames(const JobSpec& spec) {
  std::vector<std::string> names;
  for (const Input& input : spec.inputs) names.push_back("inputs." + input.name);
  for (const SideInput& input : spec.side_inputs) names.push_back("sideInputs." + input.name);
  names.emplace_back(kOutput);
  return names;
}

std::vector<std::string> UnknownPlaceholders(std::string_view text,
                                             const std::vector<std::string>& names,
                                             const PlaceholderForms& others) {
  std::vector<std::string> unknown;
  Scan(
      text, others, [](std::string_view) {},
      [&](const Written& written) {
        if (Resolve(written, names).empty()) unknown.emplace_back(written.all);
      });
  return unknown;
}

Result<std::string> SubstituteArgument(std::string_view text,
                                       const std::map<std::string, std::string>& paths,
                                       const PlaceholderForms& others) {
  std::vector<std::string> names;
  for (const auto& [name, path] : paths) names.push_back(name);
  const std::vector<std::string> unknown = UnknownPlaceholders(text, names, others);
  if (!unknown.empty()) {
    return Error{Code::kInvalid, "unknown placeholder " + Quoted(unknown[0]) + ": known are " +
                                     PlaceholderList(names)};
  }
  std::string out;
  Scan(
      text, others, [&](std::string_view literal) { out += literal; },
      [&](const Written& written) { out += paths.at(Resolve(written, names)); });
  return out;
}

bool NamesOutput(std::string_view text, const PlaceholderForms& others) {
  bool named = false;
  Scan(
      text, others, [](std::string_view) {},
      [&](const Written& written) { named |= Resolve(written, {kOutput}) == kOutput; });
  return named;
}

std::vector<std::string> FoldersOfOutput(const std::vector<std::string>& arguments,
                                         const PlaceholderForms& others) {
  std::vector<std::string> folders;
  for (const std::string& argument : arguments) {
    const size_t equals = argument.starts_with("--") ? argument.find('=') : std::string::npos;
    std::string_view value = argument;
    if (equals != std::string::npos) value.remove_prefix(equals + 1);
    const std::filesystem::path path =
        std::filesystem::path(BelowOutput(value, others)).lexically_normal();
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
