#include "api/fields/told.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "api/defaults.h"
#include "api/document.h"
#include "api/fields.h"
#include "api/fields/sections.h"
#include "api/parse.h"
#include "base/json.h"

namespace parallelrun::api::fields {
namespace {

using nlohmann::json;

bool IsForRunningJob(const Field& field) {
  return field.change == Change::kAnyTime && (field.acts & kCoordinator) != 0;
}

// Each field that is written, and not its default: those of the spec, and those of its objects.
template <typename Visit>
void EachSaid(const JobSpec& spec, const Visit& visit) {
  for (const Field& field : SpecFields()) {
    if (!field.write) continue;
    const json value = field.write(&spec);
    if (value.is_null() || value == field.initial()) continue;
    visit(field.name, field, value);
    if (!value.is_object() || !field.shape.fields) continue;
    for (const Field& below : *field.shape.fields) {
      const auto said = value.find(below.name);
      if (said == value.end() || (below.initial && *said == below.initial())) continue;
      visit(field.name + "." + below.name, below, *said);
    }
  }
}

// Likewise at any depth, the items of lists included: of each what it says, by the path of
// "inputs[].name". `visit` says whether to look below.
template <typename Visit>
void EachSaidBelow(const FieldList& fields, const json& values, const std::string& above,
                   const Visit& visit) {
  for (const Field& field : fields) {
    const auto said = values.find(field.name);
    if (said == values.end() || said->is_null()) continue;
    if (field.initial && *said == field.initial()) continue;
    const std::string path = above + field.name;
    if (!visit(path, field, *said)) continue;
    if (field.shape.fields && said->is_object()) {
      EachSaidBelow(*field.shape.fields, *said, path + ".", visit);
    }
    if (!field.shape.items || !field.shape.items->fields || !said->is_array()) continue;
    for (const json& item : *said) {
      EachSaidBelow(*field.shape.items->fields, item, path + "[].", visit);
    }
  }
}

json ForNodes(const Field& field, const json& value) {
  if (value.is_null() && field.shape.kind == Shape::Kind::kText) return "";
  const bool size = field.shape.kind == Shape::Kind::kSize && value.is_string();
  return size ? ParseJson(value.get<std::string>()).value_or(nullptr) : value;
}

}  // namespace

json FieldsForWorkers(const JobSpec& spec) {
  json told = json::object();
  EachSaid(spec, [&told](const std::string&, const Field& field, const json& value) {
    if (!field.worker_name.empty()) told[field.worker_name] = value;
  });
  return told;
}

json FieldsForNodes(const JobSpec& spec) {
  json told = json::object();
  const auto tell = [&told](const Field& field, const json& value) {
    if (!field.node_name.empty()) told[field.node_name] = ForNodes(field, value);
  };
  for (const Field& field : SpecFields()) {
    if (!field.write) continue;
    const json value = field.write(&spec);
    tell(field, value);
    if (!field.shape.fields) continue;
    for (const Field& below : *field.shape.fields) {
      tell(below, lenient::At(value, below.name.c_str()));
    }
  }
  return told;
}

std::vector<std::string> FieldsOnlyForClusters(const JobSpec& spec) {
  // What is filled in is nobody's word: with an output in a store, a claim too.
  Job unsaid;
  unsaid.spec.output.store = spec.output.store;
  FillDefaults(unsaid, Target::kLocal);
  std::map<std::string, json> filled;
  EachSaidBelow(SpecFields(), WriteFields(SpecFields(), &unsaid.spec), "",
                [&filled](const std::string& path, const Field&, const json& value) {
                  filled[path] = value;
                  return true;
                });
  std::vector<std::string> paths;
  EachSaidBelow(SpecFields(), WriteFields(SpecFields(), &spec), "",
                [&](const std::string& path, const Field& field, const json& value) {
                  const auto same = filled.find(path);
                  if (same != filled.end() && same->second == value) return false;
                  if (field.acts != kOperator && !field.only_in_cluster) return true;
                  const bool told = std::find(paths.begin(), paths.end(), path) != paths.end();
                  if (!told) paths.push_back(path);
                  return false;
                });
  return paths;
}

json FieldsForRunningJob(const JobSpec& spec) {
  json told = json::object();
  for (const Field& field : SpecFields()) {
    if (!IsForRunningJob(field)) continue;
    const json value = field.write(&spec);
    told[field.name] = value.is_null() ? ParseJson(field.as_none).value_or(nullptr) : value;
  }
  return told;
}

Status CheckForRunningJob(const std::string& name, const json& value) {
  const auto& all = SpecFields();
  const auto field = std::find_if(all.begin(), all.end(), [&name](const Field& one) {
    return one.name == name && IsForRunningJob(one);
  });
  if (field == all.end()) return Error{Code::kNotFound, name + ": there is no such field"};
  Document document = JsonDocument(value);
  if (document.problems.empty()) {
    JobSpec read;
    field->read(Value{document.job, name, document.problems}, &read, Target::kLocal);
  }
  if (document.problems.empty()) return {};
  return Error{Code::kInvalid, FormatProblem(document.problems.front(), "")};
}

}  // namespace parallelrun::api::fields
