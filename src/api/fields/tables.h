// Tables of fields in Markdown, for docs/. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace parallelrun::api::fields {

// Each field as a row: what it is called, may be, is by default, whether it may change while the
// job runs, and its text.
std::string AllRows();

// The same of `chosen`, as "output, logs.path": each with what lies below it, but for what is
// Kubernetes' own; with where it acts in place of when it may change. What the kinds of an input
// have alike is one row, as "inputs[].*.path". kNotFound: one is no field.
Result<std::string> RowsOf(std::string_view chosen);

}  // namespace parallelrun::api::fields
