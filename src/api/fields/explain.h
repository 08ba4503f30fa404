// What people are told of a field. Pure.
#pragma once

#include <string>
#include <string_view>

#include "api/fields/field.h"
#include "base/error.h"

namespace parallelrun::api::fields {

// "integer, at least 1", "list of text, at most 32".
std::string TypeText(const Shape& shape);

// "required", "3", or words; "none" where nothing stands for it.
std::string DefaultText(const Field& field);

// What a field is, may be and does, and what lies below it. `path` is as a job file's messages name
// it, "spec" for all of it; "spec." in front, and the index of a list, may be left out. kNotFound
// says which field may be meant.
Result<std::string> Explain(std::string_view path);

}  // namespace parallelrun::api::fields
