// How many worker processes a node runs, and why. Pure.
#pragma once

#include <string>

#include "api/job.h"

namespace parallelrun::api {

struct ProcessCount {
  int32_t count = 1;
  std::string source;  // "spec.processCountPerNode", "nvidia.com/gpu limit", "cpu limit", ...
};

// How many processes the devices of a node are for; 0: it has none.
int32_t ProcessesOnDevices(const JobSpec& spec);

// Devices if there are any (devices.h), times processesPerGpu, else the CPU limit (rounded down, at
// least 1), else the CPU request rounded up, else 1. Resources of the podTemplate's container
// "worker" win over spec.resources, as they do in the pod.
ProcessCount EffectiveProcessCount(const JobSpec& spec);

// On a machine of `cores` without a cluster: what the job says, else its GPUs, else one for each
// core.
ProcessCount LocalProcessCount(const JobSpec& spec, unsigned cores);

}  // namespace parallelrun::api
