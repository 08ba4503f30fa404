#include "api/devices.h"

#include <algorithm>
#include <array>
#include <limits>

#include "api/sizes.h"

namespace parallelrun::api {

bool IsDevice(std::string_view resource) {
  static constexpr std::array<std::string_view, 3> kOthers = {
      "gpu.intel.com/i915", "gpu.intel.com/xe", "habana.ai/gaudi"};
  return resource.ends_with("/gpu") || resource.ends_with("/gpu.shared") ||
         resource.starts_with("nvidia.com/mig-") ||
         std::find(kOthers.begin(), kOthers.end(), resource) != kOthers.end();
}

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

Devices DevicesOf(const JobSpec& spec) {
  Devices devices;
  const nlohmann::json resources = WorkerResources(spec);
  const auto limits = resources.find("limits");
  if (limits == resources.end() || !limits->is_object()) return devices;
  for (const auto& [name, value] : limits->items()) {
    if (!IsDevice(name)) continue;
    const Result<int64_t> amount =
        ParseQuantity(value.is_string() ? value.get<std::string>() : value.dump(), 1);
    if (!amount.ok() || *amount <= 0) continue;
    devices.count += std::min(*amount, std::numeric_limits<int64_t>::max() - devices.count);
    devices.names += (devices.names.empty() ? "" : " and ") + name;
  }
  return devices;
}

}  // namespace parallelrun::api
