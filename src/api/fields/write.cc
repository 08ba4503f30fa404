#include <nlohmann/json.hpp>

#include <algorithm>

#include "api/fields/sections.h"

namespace parallelrun::api::fields {

nlohmann::json WriteFields(const FieldList& fields, const void* owner) {
  nlohmann::json out = nlohmann::json::object();
  for (const Field& field : fields) {
    const bool has_meaning =
        std::all_of(field.conditions.begin(), field.conditions.end(),
                    [&](const Condition* condition) { return condition->applies(owner); });
    if (!field.write || !has_meaning) continue;
    nlohmann::json value = field.write(owner);
    if (value.is_null() || (field.unless_initial && value == field.initial())) continue;
    out[field.name] = std::move(value);
  }
  return out;
}

}  // namespace parallelrun::api::fields
