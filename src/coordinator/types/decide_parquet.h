// Decides the types of the columns of an input of Parquet files (parquet_types.h). Blocking I/O;
// thread-safe.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "coordinator/plan/planner.h"
#include "coordinator/types/parquet_types.h"

namespace parallelrun::coordinator {

// Reads the footers of all files. Empty for an input without a row; errors name input and file:
// those of Planner::Next and of ParquetTypes::Add.
Result<ParquetTypes> DecideParquetTypes(const PlanInput& input, store::Store& store);

}  // namespace parallelrun::coordinator
