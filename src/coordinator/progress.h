// What `GET /v1/progress` and `GET /metrics` say (docs/coordinator-api.md).
#pragma once

#include <map>
#include <string>

#include "coordinator/coordinator.h"

namespace parallelrun {

// JSON text. `started` is when this coordinator started, `metrics` name to last value as JSON text.
std::string ProgressJson(const Coordinator& coordinator, uint32_t epoch, WallTime started,
                         const std::map<std::string, std::string>& metrics,
                         const std::string& warning);

// Prometheus text format.
std::string Metrics(const Coordinator& coordinator, uint32_t epoch);

}  // namespace parallelrun
