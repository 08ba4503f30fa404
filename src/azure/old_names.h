// The names that Azure ML's ParallelRunConfig, ParallelRunStep and parallel job use for what a
// ParallelRunJob has: for the messages about unknown fields.
#pragma once

#include <string>
#include <string_view>

namespace parallelrun::azure {

// "write spec.entryScript" for "entry_script" or "entryscript"; "" for a name that is not known.
std::string OldNameMend(std::string_view name);

}  // namespace parallelrun::azure
