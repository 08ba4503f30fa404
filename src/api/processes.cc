#include "api/processes.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "api/sizes.h"

namespace parallelrun::api {
namespace {

nlohmann::json WorkerResources(const JobSpec& spec) {
  nlohmann::json resources = spec.resources.is_object() ? spec.resources : nlohmann::json::object();
  const nlohmann::json::json_pointer containers_at("/spec/containers");
  if (!spec.pod_template.is_object() || !spec.pod_template.contains(containers_at)) {
    return resources;
  }
  for (const nlohmann::json& container : spec.pod_template.at(containers_at)) {
    if (!container.is_object() || !container.contains("resources")) continue;
    const auto name = container.find("name");
    if (name != container.end() && *name == "worker") {
      resources.merge_patch(container.at("resources"));
    }
  }
  return resources;
}

// resources[part][name] in units of 1/scale; nullopt when absent or no quantity.
std::optional<int64_t> Amount(const nlohmann::json& part, const std::string& name, int64_t scale) {
  const auto found = part.find(name);
  if (found == part.end()) return std::nullopt;
  const std::string text = found->is_string() ? found->get<std::string>() : found->dump();
  const Result<int64_t> quantity = ParseQuantity(text, scale);
  return quantity.ok() ? std::optional(*quantity) : std::nullopt;
}

bool IsGpu(const std::string& name) {
  return name.ends_with("/gpu") || name.starts_with("nvidia.com/mig-");
}

int32_t Clamped(int64_t count) {
  return static_cast<int32_t>(std::clamp<int64_t>(count, 1, std::numeric_limits<int32_t>::max()));
}

nlohmann::json Part(const nlohmann::json& resources, const char* name) {
  const auto found = resources.find(name);
  return found != resources.end() && found->is_object() ? *found : nlohmann::json::object();
}

std::optional<ProcessCount> GpuLimit(const nlohmann::json& limits) {
  for (const auto& [name, value] : limits.items()) {
    const int64_t gpus = IsGpu(name) ? Amount(limits, name, 1).value_or(0) : 0;
    if (gpus > 0) return ProcessCount{Clamped(gpus), name + " limit"};
  }
  return std::nullopt;
}

ProcessCount Written(const JobSpec& spec) {
  return {*spec.process_count_per_node, "spec.processCountPerNode"};
}

}  // namespace

ProcessCount EffectiveProcessCount(const JobSpec& spec) {
  if (spec.process_count_per_node) return Written(spec);
  const nlohmann::json resources = WorkerResources(spec);
  const nlohmann::json limits = Part(resources, "limits");
  if (const auto gpus = GpuLimit(limits)) return *gpus;
  if (const auto cpu = Amount(limits, "cpu", 1000)) return {Clamped(*cpu / 1000), "cpu limit"};
  if (const auto cpu = Amount(Part(resources, "requests"), "cpu", 1000)) {
    return {Clamped((*cpu + 999) / 1000), "cpu request, rounded up"};
  }
  return {1, "default"};
}

ProcessCount LocalProcessCount(const JobSpec& spec, unsigned cores) {
  if (spec.process_count_per_node) return Written(spec);
  if (const auto gpus = GpuLimit(Part(WorkerResources(spec), "limits"))) return *gpus;
  return {Clamped(cores), "cores of this machine"};
}

}  // namespace parallelrun::api
