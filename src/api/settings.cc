#include "api/settings.h"

#include <algorithm>
#include <map>

#include "api/enums.h"
#include "api/fields/sections.h"
#include "api/node.h"
#include "api/to_json.h"

namespace parallelrun {
namespace {

using nlohmann::json;

constexpr int kMaxDepth = 16;  // a plan has five levels

// Every leaf by its field path.
bool Flatten(const json& value, const std::string& path, int depth,
             std::map<std::string, std::string>& out) {
  if (depth > kMaxDepth) return false;
  if (value.is_object()) {
    for (const auto& [key, field] : value.items()) {
      if (!Flatten(field, JoinPath(path, key), depth + 1, out)) return false;
    }
  } else if (value.is_array()) {
    for (size_t i = 0; i < value.size(); ++i) {
      if (!Flatten(value[i], JoinPath(path, i), depth + 1, out)) return false;
    }
  } else {
    out[path] = CanonicalText(value);
  }
  return true;
}

Result<std::map<std::string, std::string>> Leaves(std::string_view text) {
  const Error corrupt{Code::kCorrupt, "stored plan settings are not a JSON object"};
  // Depth is bounded while parsing: nlohmann's own recursion is not.
  const json value = json::parse(
      text, [](int depth, json::parse_event_t, json&) { return depth <= kMaxDepth; }, false);
  std::map<std::string, std::string> leaves;
  if (!value.is_object() || !Flatten(value, "spec", 0, leaves)) return corrupt;
  return leaves;
}

// What failed may be read in another way (WrittenTypes), and what was refused with another bound.
void EraseAnew(const fields::FieldList& fields, json& object) {
  for (const fields::Field& field : fields) {
    if (field.anew) object.erase(field.name);
    if (field.shape.fields && object.contains(field.name)) {
      EraseAnew(*field.shape.fields, object[field.name]);
    }
  }
}

}  // namespace

std::string PlanSettings(const Job& job, const std::map<std::string, std::string>& volumes) {
  json settings = {{"inputs", json::array()},
                   {"rankMiniBatchCount", job.spec.rank_mini_batch_count}};
  for (const Input& input : job.spec.inputs) {
    json planned = ToJson(input);
    EraseAnew(fields::InputFields(), planned);
    settings["inputs"].push_back(std::move(planned));
    for (const ObjectStore& store : job.spec.stores) {
      if (store.name != input.store) continue;
      settings["stores"][store.name] = {{"url", store.url}, {"endpoint", store.endpoint}};
    }
    const auto volume = volumes.find(input.from.volume);
    if (volume != volumes.end()) settings["volumes"][volume->first] = volume->second;
  }
  if (job.spec.partition_keys.empty()) {
    settings["miniBatchSize"] = job.spec.mini_batch_size;
  } else {
    settings["partitionKeys"] = job.spec.partition_keys;
  }
  // Rows of two formats are never in one output. The first one is left out: ledgers from before
  // there were others do not have it.
  if (job.spec.output.format != OutputFormat::kText) {
    settings["output"]["format"] = EnumWord(job.spec.output.format);
  }
  return CanonicalText(settings);
}

std::string ScriptSettings(std::string_view job) {
  json settings = json::object();
  const json parsed = json::parse(job, nullptr, false);
  const json spec = parsed.is_object() ? parsed.value("spec", json::object()) : json::object();
  for (const char* key : {"entryScript", "arguments"}) {
    if (spec.is_object() && spec.contains(key)) settings[key] = spec[key];
  }
  return CanonicalText(settings);
}

std::string WrittenTypes(std::string_view job) {
  json types = json::object();
  const json parsed = json::parse(job, nullptr, false);
  const json spec = parsed.is_object() ? parsed.value("spec", json::object()) : json::object();
  if (!spec.is_object() || !spec.contains("inputs")) return CanonicalText(types);
  for (const json& input : spec["inputs"]) {
    if (!input.is_object() || !input.contains("tabular")) continue;
    const json& tabular = input["tabular"];
    if (!tabular.is_object()) continue;
    for (const char* key : {"dtypes", "badRows"}) {
      if (tabular.contains(key)) types[input.value("name", "")][key] = tabular[key];
    }
  }
  return CanonicalText(types);
}

Result<std::vector<std::string>> Differences(std::string_view before, std::string_view after) {
  const auto old_leaves = Leaves(before);
  if (!old_leaves.ok()) return old_leaves.error();
  const auto new_leaves = Leaves(after);
  if (!new_leaves.ok()) return new_leaves.error();
  std::map<std::string, std::pair<std::string, std::string>> both;
  for (const auto& [path, value] : *old_leaves) both[path] = {value, "(none)"};
  for (const auto& [path, value] : *new_leaves) {
    both.try_emplace(path, "(none)", "").first->second.second = value;
  }
  std::vector<std::string> lines;
  for (const auto& [path, values] : both) {
    if (values.first == values.second) continue;
    lines.push_back(path + ": " + values.first + " -> " + values.second);
  }
  return lines;
}

}  // namespace parallelrun
