// The parts of committed files that are made from the fields. Such a part stands between two lines:
//   … BEGIN made by script/fields: WHAT
//   … END made
// WHAT is "spec" (its schema) or "rules of the job", both as YAML; or tables in Markdown: "fields"
// has all of them, "rows of output, logs.path" those (tables.h). Pure.
#pragma once

#include <string>

#include "base/error.h"

namespace parallelrun::api::fields {

// `file` with every such part as the fields are now. kInvalid: a begin without an end, or of
// something that nobody knows; kNotFound: of a field that is none.
Result<std::string> WithMadeParts(const std::string& file);

}  // namespace parallelrun::api::fields
