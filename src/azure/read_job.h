// Job files as all programs read them: with what people bring along from Azure ML. Predefined
// arguments become fields (predefined.h), old names of fields are answered with the new ones
// (old_names.h), and placeholders may be written in its way (script_arguments.h). Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/parse.h"

namespace parallelrun::azure {

const api::Dialect& JobDialect();

// As those of api/parse.h.
api::ParsedJob ReadJob(std::string_view text, const std::vector<std::string>& overrides,
                       api::Target target);
api::ParsedJob ReadJob(const nlohmann::json& object, api::Target target);
api::ParsedJob ParseJob(api::Node root, api::Target target);

}  // namespace parallelrun::azure
