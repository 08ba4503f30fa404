// A job as canonical JSON: every effective value, keys in a stable order; what ParseJob reads back
// as the same job. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "api/job.h"

namespace parallelrun::api {

nlohmann::json ToJson(const Job& job);
nlohmann::json ToJson(const Input& input);

// Compact text of canonical JSON; never throws (what is not UTF-8 becomes U+FFFD).
std::string CanonicalText(const nlohmann::json& json);

}  // namespace parallelrun::api
