// Which resources of a node are devices that its processes compute on, as GPUs are: the one place
// that knows their names. Pure.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "api/job.h"

namespace parallelrun::api {

// "nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.5gb", "amd.com/gpu", … Neither
// memory nor shares of a device, nor what a runtime gives to one process whole.
bool IsDevice(std::string_view resource);

// Of the node's container: spec.resources, with those of the podTemplate's container "worker" in
// their place, as in the pod.
nlohmann::json WorkerResources(const JobSpec& spec);

// What the limits of a node's container hold: those of several names together, as parts of GPUs in
// several sizes are.
struct Devices {
  int64_t count = 0;
  std::string names;  // "nvidia.com/gpu", "nvidia.com/mig-1g.5gb and nvidia.com/mig-2g.10gb"
};
Devices DevicesOf(const JobSpec& spec);

}  // namespace parallelrun::api
