// What delimited text seems to be written in where it is read as something else: for people, who
// know. Nothing is ever read by it. Pure, thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "plan/columns/seen_rows.h"
#include "plan/planner.h"

namespace parallelrun::plan {

// Of the front of a file so much is looked at.
inline constexpr size_t kDialectFront = 64 * 1024;

// What was seen and which fields to write: `the delimiter seems to be ";": write delimiter: ";"`.
// Asked where the table has one column whose name holds a delimiter, or where more than a tenth of
// the rows are not as wide as the header; else only about decimal commas. `front`: the header and
// rows behind it. Empty: nothing to say.
std::string DialectAdvice(std::string_view front, const RowCounts& counts, const PlanInput& input);

}  // namespace parallelrun::plan
