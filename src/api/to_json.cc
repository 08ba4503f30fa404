#include "api/to_json.h"

#include "api/fields/sections.h"

namespace parallelrun::api {
namespace {

using nlohmann::json;

json MetadataJson(const JobMetadata& metadata) {
  json out = {{"name", metadata.name}};
  if (!metadata.name_space.empty()) out["namespace"] = metadata.name_space;
  if (!metadata.uid.empty()) out["uid"] = metadata.uid;
  if (metadata.generation != 0) out["generation"] = metadata.generation;
  if (!metadata.labels.empty()) out["labels"] = metadata.labels;
  if (!metadata.annotations.empty()) out["annotations"] = metadata.annotations;
  return out;
}

}  // namespace

json ToJson(const Input& input) { return fields::WriteFields(fields::InputFields(), &input); }

json ToJson(const Job& job) {
  return {{"apiVersion", kApiVersion},
          {"kind", kJobKind},
          {"metadata", MetadataJson(job.metadata)},
          {"spec", fields::WriteFields(fields::SpecFields(), &job.spec)}};
}

std::string CanonicalText(const json& json) {
  return json.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace parallelrun::api
