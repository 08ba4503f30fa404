#include "operator/schema_check.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "api/fields/walk.h"
#include "base/json.h"
#include "base/version.h"
#include "kube/resource.h"

namespace parallelrun::operators {
namespace {

using nlohmann::json;

constexpr char kPath[] = "/openapi/v3/apis/parallelrun.dev/v1alpha1";
constexpr char kMend[] =
    "helm upgrade with crds.install=true, or kubectl apply --server-side -f crds/, of this release";

// What the operator writes.
constexpr const char* kStatusFields[] = {
    "status.observedGeneration",
    "status.phase",
    "status.conditions[].type",
    "status.startTime",
    "status.cleanupTime",
    "status.completionTime",
    "status.nodes.restarts",
    "status.nodes.againstLimit",
    "status.nodes.disruptions",
    "status.progress.miniBatches.succeeded",
    "status.failure.errors",
    "status.output.sha256",
    "status.effective.runtimeImage",
    "status.effective.coordinatorPort",
    "status.usage.nodeSeconds",
    "status.logs",
    "status.url",
    "status.replicas",
    "status.selector",
    "status.display.status",
    "status.highestIncarnation",
    "status.highestNodeCount",
    "status.counted",
    "status.coordinator.fruitlessRestarts",
};

// "[]" behind a name steps into the items of that list.
bool Has(const json& schema, std::string_view path) {
  const json* at = &schema;
  while (!path.empty()) {
    if (!at->is_object()) return false;
    const auto loose = at->find("x-kubernetes-preserve-unknown-fields");
    if (loose != at->end() && *loose == true) return true;
    const size_t dot = path.find('.');
    std::string step(path.substr(0, dot));
    path = dot == std::string_view::npos ? "" : path.substr(dot + 1);
    const bool list = step.ends_with("[]");
    if (list) step.resize(step.size() - 2);
    const auto properties = at->find("properties");
    if (properties == at->end() || !properties->is_object()) return false;
    const auto found = properties->find(step);
    if (found == properties->end()) return false;
    at = &*found;
    if (!list) continue;
    const auto items = at->find("items");
    if (items == at->end()) return false;
    at = &*items;
  }
  return true;
}

bool IsJob(const json& schema) {
  const auto kinds = schema.find("x-kubernetes-group-version-kind");
  if (kinds == schema.end() || !kinds->is_array()) return false;
  for (const json& kind : *kinds) {
    if (kube::TextAt(kind, "/kind") == "ParallelRunJob") return true;
  }
  return false;
}

std::vector<std::string> MissingIn(const json& schema) {
  std::vector<std::string> missing;
  const auto look = [&](const std::string& path) {
    // What lies below a field that is not there is not said too.
    const bool below = !missing.empty() && path.starts_with(missing.back()) &&
                       path.find_first_of(".[", missing.back().size()) == missing.back().size();
    if (!below && !Has(schema, path)) missing.push_back(path);
  };
  api::fields::EachField([&](const std::string& path, const api::fields::Field&,
                             const api::fields::Field&) { look(path); });
  for (const char* path : kStatusFields) look(path);
  return missing;
}

}  // namespace

std::vector<std::string> MissingFields(const json& openapi) {
  const json::json_pointer place("/components/schemas");
  if (openapi.contains(place) && openapi[place].is_object()) {
    for (const auto& [name, schema] : openapi[place].items()) {
      if (!schema.is_object() || !IsJob(schema)) continue;
      return MissingIn(schema);
    }
  }
  return {"kind ParallelRunJob"};
}

Status CheckServedSchema(kube::Client& client) {
  const kube::ApiResult<std::string> text = client.GetRaw(kPath);
  const Error absent{Code::kNotFound,
                     fmt::format("the API server serves no ParallelRunJob of parallelrun.dev/"
                                 "v1alpha1: {}",
                                 kMend)};
  if (!text.ok()) {
    if (text.error().status == 404) return absent;
    return Error{Code::kUnavailable, text.error().message};
  }
  const std::optional<json> openapi = ParseJson(*text);
  if (!openapi) return Error{Code::kUnavailable, std::string(kPath) + " is not JSON"};
  std::vector<std::string> missing = MissingFields(*openapi);
  if (missing.empty()) return {};
  if (missing.front().starts_with("kind ")) return absent;
  const size_t count = missing.size();
  constexpr size_t kMostNamed = 5;
  if (count > kMostNamed) missing.resize(kMostNamed);
  return Error{
      Code::kStale,
      fmt::format("the CustomResourceDefinition in the cluster is older than this operator "
                  "({}): it lacks {} field{}: {}{}. To fix it: {}",
                  kVersion, count, count == 1 ? "" : "s", fmt::join(missing, ", "),
                  count > kMostNamed ? ", ..." : "", kMend)};
}

}  // namespace parallelrun::operators
