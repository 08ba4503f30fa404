// What stands around and between the rows in the output: how a format joins what the workers made,
// part by part, into one file (docs/formats.md). The rows' own bytes are the worker's. Pure; one
// object joins one file.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "api/job.h"
#include "base/error.h"

namespace parallelrun {

class RowFormat {
 public:
  // Takes the next bytes of the file; they need not outlive the call.
  using Put = std::function<Status(std::string_view bytes)>;

  virtual ~RowFormat() = default;
  // In front of all rows.
  virtual Status Begin(const Put& put) = 0;
  // For each part of a mini-batch's rows, in the order of the output.
  virtual Status Add(std::string_view rows, const Put& put) = 0;
  // Behind the last row.
  virtual Status End(const Put& put) = 0;
};

// `header` is the line that the job's DataFrames told, with its line end; empty: none did. Formats
// that have no place for it leave it out.
std::unique_ptr<RowFormat> MakeRowFormat(OutputFormat format, std::string header);

}  // namespace parallelrun
