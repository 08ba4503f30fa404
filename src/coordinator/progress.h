// What `GET /v1/progress` and `GET /metrics` say (docs/coordinator-api.md).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "coordinator/coordinator.h"
#include "job/ids.h"

namespace parallelrun {

inline constexpr size_t kErrorsTold = 5;

// JSON text. `started` is when this coordinator started, `metrics` name to last value as JSON text,
// `columns` what is told of the columns of each input whose types are decided, `left_out` of names
// in the inputs that are no data, `first_lost` are names of items, `items` says what a mini-batch
// is made of.
std::string ProgressJson(const Coordinator& coordinator, uint32_t epoch, WallTime started,
                         const std::map<std::string, std::string>& metrics,
                         const std::string& warning,
                         const std::map<uint32_t, std::string>& columns = {},
                         const std::vector<std::string>& left_out = {},
                         const std::vector<std::string>& first_lost = {},
                         const std::map<BatchId, std::string>& items = {});

// Prometheus text format.
std::string Metrics(const Coordinator& coordinator, uint32_t epoch);

}  // namespace parallelrun
