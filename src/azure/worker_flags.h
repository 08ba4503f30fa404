// What predefined arguments say that no field of the job does: how worker processes treat what the
// script returns. It follows from the arguments alone. Pure; any thread.
#pragma once

#include <string>
#include <vector>

namespace parallelrun::azure {

struct WorkerFlags {
  bool append_row_dataframe_header = false;  // a header line, once in the output file
  bool append_row_safe_output = false;
  bool mixed_types = false;     // DataFrames keep columns whose values are of several types
  bool async_mode = false;      // enqueue() in place of run()
  bool component_mode = false;  // a row is JSON, of which only "output" is appended
  bool operator==(const WorkerFlags&) const = default;
};

// Of a job's spec.arguments. Values that do not fit say nothing: ApplyPredefined has told of them.
WorkerFlags WorkerFlagsOf(const std::vector<std::string>& arguments);

}  // namespace parallelrun::azure
