// Internal to the operator: a time in JSON that others wrote. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "base/json.h"
#include "operator/status/status.h"

namespace parallelrun::operators {

// nullopt unless it is a time.
inline std::optional<WallTime> TimeAt(const nlohmann::json& object, const char* key) {
  return ParseRfc3339(lenient::Text(object, key));
}

}  // namespace parallelrun::operators
