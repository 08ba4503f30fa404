#include "operator/schema_check.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "kube/resource.h"

namespace parallelrun {
namespace {

using nlohmann::json;

constexpr char kPath[] = "/openapi/v3/apis/parallelrun.dev/v1alpha1";
constexpr char kMend[] =
    "helm upgrade with crds.install=true, or kubectl apply --server-side -f crds/, of this release";

// "[]" steps into the items of a list. What lies below objects that Kubernetes alone interprets is
// not listed.
constexpr const char* kFields[] = {"spec.entryScript",
                                   "spec.code.configMap",
                                   "spec.code.volume",
                                   "spec.code.image",
                                   "spec.arguments",
                                   "spec.environment.image",
                                   "spec.environment.env",
                                   "spec.environment.envFrom",
                                   "spec.environment.python",
                                   "spec.environment.imagePullPolicy",
                                   "spec.environment.imagePullSecrets",
                                   "spec.volumes.[].name",
                                   "spec.inputs.[].files",
                                   "spec.inputs.[].tabular",
                                   "spec.inputs.[].jsonLines",
                                   "spec.sideInputs.[].mountPath",
                                   "spec.output.volume",
                                   "spec.output.path",
                                   "spec.output.action",
                                   "spec.output.fileName",
                                   "spec.output.order",
                                   "spec.output.ifExists",
                                   "spec.output.mountOnNodes",
                                   "spec.logs",
                                   "spec.state.ephemeral",
                                   "spec.nodeCount",
                                   "spec.processCountPerNode",
                                   "spec.miniBatchSize",
                                   "spec.partitionKeys",
                                   "spec.errorThreshold",
                                   "spec.allowedFailedCount",
                                   "spec.allowedFailedPercent",
                                   "spec.shortReturn",
                                   "spec.runMaxTry",
                                   "spec.isolateFailures",
                                   "spec.speculation",
                                   "spec.runInvocationTimeoutSeconds",
                                   "spec.taskOverheadTimeoutSeconds",
                                   "spec.progressUpdateTimeoutSeconds",
                                   "spec.firstTaskCreationTimeoutSeconds",
                                   "spec.loggingLevel",
                                   "spec.resourceMonitorIntervalSeconds",
                                   "spec.profiling",
                                   "spec.nodeRestartLimit",
                                   "spec.cancel",
                                   "spec.suspend",
                                   "spec.activeDeadlineSeconds",
                                   "spec.ttlSecondsAfterFinished",
                                   "spec.deleteAfterFinished",
                                   "spec.managedBy",
                                   "spec.startupDeadlineSeconds",
                                   "spec.resources",
                                   "spec.sharedMemory",
                                   "spec.podTemplate",
                                   "spec.coordinator.resources",
                                   "spec.coordinator.podTemplate",
                                   "spec.coordinator.restartLimit",
                                   "status.observedGeneration",
                                   "status.phase",
                                   "status.conditions.[].type",
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
                                   "status.coordinator.fruitlessRestarts"};

bool Has(const json& schema, std::string_view path) {
  const json* at = &schema;
  while (!path.empty()) {
    if (!at->is_object()) return false;
    const auto loose = at->find("x-kubernetes-preserve-unknown-fields");
    if (loose != at->end() && *loose == true) return true;
    const size_t dot = path.find('.');
    const std::string step(path.substr(0, dot));
    path = dot == std::string_view::npos ? "" : path.substr(dot + 1);
    if (step == "[]") {
      const auto items = at->find("items");
      if (items == at->end()) return false;
      at = &*items;
      continue;
    }
    const auto properties = at->find("properties");
    if (properties == at->end() || !properties->is_object()) return false;
    const auto found = properties->find(step);
    if (found == properties->end()) return false;
    at = &*found;
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

}  // namespace

std::vector<std::string> MissingFields(const json& openapi) {
  const json::json_pointer place("/components/schemas");
  if (openapi.contains(place) && openapi[place].is_object()) {
    for (const auto& [name, schema] : openapi[place].items()) {
      if (!schema.is_object() || !IsJob(schema)) continue;
      std::vector<std::string> missing;
      for (const char* field : kFields) {
        if (!Has(schema, field)) missing.emplace_back(field);
      }
      return missing;
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
  const std::optional<json> openapi = kube::ParseJson(*text);
  if (!openapi) return Error{Code::kUnavailable, std::string(kPath) + " is not JSON"};
  std::vector<std::string> missing = MissingFields(*openapi);
  if (missing.empty()) return {};
  if (missing.front().starts_with("kind ")) return absent;
  const size_t count = missing.size();
  constexpr size_t kShown = 5;
  if (count > kShown) missing.resize(kShown);
  return Error{
      Code::kStale,
      fmt::format("the CustomResourceDefinition in the cluster is older than this operator "
                  "({}): it lacks {} field{}: {}{}. Mend: {}",
                  PARALLELRUN_VERSION, count, count == 1 ? "" : "s", fmt::join(missing, ", "),
                  count > kShown ? ", ..." : "", kMend)};
}

}  // namespace parallelrun
