// Decides the types of the columns of an input of Parquet files (parquet_types.h). Blocking I/O;
// thread-safe.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "plan/columns/parquet_types.h"
#include "plan/planner.h"

namespace parallelrun::plan {

// Reads the footers of all files. Empty for an input without a row; errors name input and file:
// those of Planner::Next and of ParquetTypes::Add.
Result<ParquetTypes> DecideParquetTypes(const PlanInput& input, store::Store& store);

}  // namespace parallelrun::plan
