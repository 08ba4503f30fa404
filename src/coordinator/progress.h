// What `GET /v1/progress` and `GET /metrics` say (docs/coordinator-api.md).
#pragma once

#include <map>
#include <string>

#include "coordinator/coordinator.h"

namespace parallelrun {

// JSON text. `control_generation` is that of the last control, `started` when this coordinator
// started, `metrics` name to last value as JSON text.
std::string ProgressJson(const Coordinator& coordinator, uint32_t epoch,
                         uint64_t control_generation, WallTime started,
                         const std::map<std::string, std::string>& metrics);

// Prometheus text format.
std::string Metrics(const Coordinator& coordinator, uint32_t epoch);

}  // namespace parallelrun
