// A schema as YAML that people read: short objects on one line, long text folded. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace parallelrun::api::fields {

// `value`, an object or a list, each line indented by `indent` blanks. Text must be free of line
// breaks.
std::string SchemaYaml(const nlohmann::ordered_json& value, size_t indent);

}  // namespace parallelrun::api::fields
