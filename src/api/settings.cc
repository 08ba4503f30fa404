#include "api/settings.h"

#include <spdlog/fmt/fmt.h>
#include <xxhash.h>

#include <algorithm>
#include <initializer_list>
#include <map>

#include "api/enums.h"
#include "api/fields/sections.h"
#include "api/node.h"
#include "api/to_json.h"
#include "base/json.h"

namespace parallelrun::api {
namespace {

using nlohmann::json;

constexpr int kMaxDepth = 16;  // a plan has five levels

// Every leaf by its field path.
void Flatten(const json& value, const std::string& path, std::map<std::string, std::string>& out) {
  if (value.is_object()) {
    for (const auto& [key, field] : value.items()) {
      // A flag is no field of the job.
      Flatten(field, key.starts_with("--") ? key : JoinPath(path, key), out);
    }
  } else if (value.is_array()) {
    for (size_t i = 0; i < value.size(); ++i) {
      Flatten(value[i], JoinPath(path, i), out);
    }
  } else {
    out[path] = CanonicalText(value);
  }
}

Result<std::map<std::string, std::string>> Leaves(std::string_view text) {
  const Error corrupt{Code::kCorrupt, "stored plan settings are not a JSON object"};
  const std::optional<json> value = ParseJson(text, kMaxDepth);
  std::map<std::string, std::string> leaves;
  if (!value || !value->is_object()) return corrupt;
  Flatten(*value, "spec", leaves);
  return leaves;
}

constexpr char kLimit[] = "--limit";
constexpr char kChosen[] = "--sample or --only";

// Which files were chosen, as a text that differs where they do.
std::string ChosenText(const std::map<std::string, std::vector<uint64_t>>& files) {
  uint64_t count = 0;
  uint64_t digest = 0;
  for (const auto& [input, names] : files) {
    if (names.empty()) continue;
    count += names.size();
    digest = XXH3_64bits_withSeed(input.data(), input.size(), digest);
    digest = XXH3_64bits_withSeed(names.data(), names.size() * sizeof names[0], digest);
  }
  return fmt::format("{} file{} ({:016x})", count, count == 1 ? "" : "s", digest);
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

// These fields of `spec`.
std::string FieldsOf(std::string_view job, std::initializer_list<const char*> keys) {
  json settings = json::object();
  const json parsed = ParseJson(job).value_or(nullptr);
  const json& spec = lenient::At(parsed, "spec");
  for (const char* key : keys) {
    if (const json& said = lenient::At(spec, key); !said.is_null()) settings[key] = said;
  }
  return CanonicalText(settings);
}

}  // namespace

uint64_t FileDigest(std::string_view name) { return XXH3_64bits(name.data(), name.size()); }

std::string PlanSettings(const Job& job, const std::map<std::string, std::string>& volumes,
                         const Selection& selection) {
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
  // Rows of two formats, or with and without an origin, are never in one output. The first one is
  // left out: ledgers from before there were others do not have it.
  if (job.spec.output.format != OutputFormat::kText) {
    settings["output"]["format"] = EnumWord(job.spec.output.format);
  }
  if (job.spec.output.provenance) settings["output"]["provenance"] = true;
  // In front of the rows stands what an attempt has written beside them.
  if (job.spec.output.side_files == SideFiles::kStaged) {
    settings["output"]["sideFiles"] = EnumWord(job.spec.output.side_files);
  }
  if (selection.limit) settings[kLimit] = *selection.limit;
  if (selection.files) settings[kChosen] = ChosenText(*selection.files);
  return CanonicalText(settings);
}

std::string TrialOf(std::string_view plan_settings) {
  const json settings = ParseJson(plan_settings).value_or(nullptr);
  if (const uint64_t limit = lenient::Unsigned(settings, kLimit); limit > 0) {
    return limit == 1 ? "the first item (--limit)"
                      : fmt::format("the first {} items (--limit)", limit);
  }
  const std::string chosen = lenient::Text(settings, kChosen);
  if (chosen.empty()) return "";
  return chosen.substr(0, chosen.find(" (")) + " (" + kChosen + ")";
}

std::string ScriptSettings(std::string_view job) {
  return FieldsOf(job, {"entryScript", "arguments"});
}

std::string ThresholdSettings(std::string_view job) {
  return FieldsOf(job,
                  {"errorThreshold", "allowedFailedCount", "allowedFailedPercent", "shortReturn"});
}

std::string WrittenTypes(std::string_view job) {
  json types = json::object();
  const json parsed = ParseJson(job).value_or(nullptr);
  for (const json& input : lenient::List(lenient::At(parsed, "spec"), "inputs")) {
    for (const char* key : {"dtypes", "badRows"}) {
      const json& said = lenient::At(lenient::At(input, "tabular"), key);
      if (!said.is_null()) types[lenient::Text(input, "name")][key] = said;
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

}  // namespace parallelrun::api
