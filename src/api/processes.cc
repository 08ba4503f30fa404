#include "api/processes.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "api/devices.h"
#include "api/sizes.h"

namespace parallelrun::api {
namespace {

// resources[part][name] in units of 1/scale; nullopt when absent or no quantity.
std::optional<int64_t> Amount(const nlohmann::json& part, const std::string& name, int64_t scale) {
  const auto found = part.find(name);
  if (found == part.end()) return std::nullopt;
  const std::string text = found->is_string() ? found->get<std::string>() : found->dump();
  const Result<int64_t> quantity = ParseQuantity(text, scale);
  return quantity.ok() ? std::optional(*quantity) : std::nullopt;
}

int32_t Clamped(int64_t count) {
  return static_cast<int32_t>(std::clamp<int64_t>(count, 1, std::numeric_limits<int32_t>::max()));
}

nlohmann::json Part(const nlohmann::json& resources, const char* name) {
  const auto found = resources.find(name);
  return found != resources.end() && found->is_object() ? *found : nlohmann::json::object();
}

std::optional<ProcessCount> ByDevices(const JobSpec& spec) {
  const int32_t count = ProcessesOnDevices(spec);
  if (count == 0) return std::nullopt;
  const char* const shared = spec.processes_per_gpu > 1 ? ", times processesPerGpu" : "";
  return ProcessCount{count, DevicesOf(spec).names + " limit" + shared};
}

ProcessCount Written(const JobSpec& spec) {
  return {*spec.process_count_per_node, "spec.processCountPerNode"};
}

}  // namespace

int32_t ProcessesOnDevices(const JobSpec& spec) {
  const int64_t devices = DevicesOf(spec).count;
  return devices == 0 ? 0 : Clamped(int64_t{Clamped(devices)} * spec.processes_per_gpu);
}

ProcessCount EffectiveProcessCount(const JobSpec& spec) {
  if (spec.process_count_per_node) return Written(spec);
  if (const auto devices = ByDevices(spec)) return *devices;
  const nlohmann::json resources = WorkerResources(spec);
  const nlohmann::json limits = Part(resources, "limits");
  if (const auto cpu = Amount(limits, "cpu", 1000)) return {Clamped(*cpu / 1000), "cpu limit"};
  if (const auto cpu = Amount(Part(resources, "requests"), "cpu", 1000)) {
    return {Clamped((*cpu + 999) / 1000), "cpu request, rounded up"};
  }
  return {1, "default"};
}

ProcessCount LocalProcessCount(const JobSpec& spec, unsigned cores) {
  if (spec.process_count_per_node) return Written(spec);
  if (const auto devices = ByDevices(spec)) return *devices;
  return {Clamped(cores), "cores of this machine"};
}

}  // namespace parallelrun::api
