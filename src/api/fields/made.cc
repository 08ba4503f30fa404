#include "api/fields/made.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/fields/schema.h"
#include "api/fields/schema_yaml.h"
#include "api/fields/tables.h"

namespace parallelrun::api::fields {
namespace {

constexpr std::string_view kBegin = "BEGIN made by script/fields: ";
constexpr std::string_view kEnd = "END made";

Result<std::string> Make(std::string_view what, size_t indent) {
  constexpr std::string_view kRowsOf = "rows of ";
  if (what == "spec") return SchemaYaml(SpecSchema(), indent);
  if (what == "rules of the job") return SchemaYaml(JobRules(), indent);
  if (what == "fields") return AllRows();
  if (what.starts_with(kRowsOf)) return RowsOf(what.substr(kRowsOf.size()));
  return Error{Code::kInvalid, "nobody makes \"" + std::string(what) + "\""};
}

}  // namespace

Result<std::string> WithMadeParts(const std::string& file) {
  std::string out;
  bool within = false;
  for (size_t at = 0; at < file.size();) {
    const size_t end = std::min(file.find('\n', at), file.size() - 1) + 1;
    const std::string_view line = std::string_view(file).substr(at, end - at);
    at = end;
    if (line.find(kEnd) != std::string_view::npos) within = false;
    if (!within) out += line;
    const size_t begin = line.find(kBegin);
    if (begin == std::string_view::npos) continue;
    std::string_view what = line.substr(begin + kBegin.size());
    what = what.substr(0, what.find_last_not_of(" ->\n") + 1);  // and the end of an HTML comment
    const Result<std::string> made = Make(what, line.find_first_not_of(' '));
    if (!made.ok()) return made.error();
    out += *made;
    within = true;
  }
  if (within) return Error{Code::kInvalid, "a part that is made has no end"};
  return out;
}

}  // namespace parallelrun::api::fields
