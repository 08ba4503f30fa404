// The fields as the API server is told of them: OpenAPI v3 with rules in CEL. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "api/fields/field.h"

namespace parallelrun::api::fields {

// The schema of spec.
nlohmann::ordered_json SpecSchema();

// The rules that stand beside the spec, at the job: a rule at a field is not asked when the field
// comes or goes.
nlohmann::ordered_json JobRules();

}  // namespace parallelrun::api::fields
