// What stands around and between the rows in the output: how a format joins what the workers made,
// part by part, into one file (docs/formats.md). The rows' own bytes are the worker's. Pure; one
// object joins one file.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/data.h"
#include "base/error.h"
#include "parquet/column.h"

namespace parallelrun::output {

// The rows that are to come.
struct RowsAhead {
  uint64_t results = 0;
  uint64_t rows = 0;
  uint64_t bytes = 0;  // as the workers made them
};

class RowFormat {
 public:
  // Takes the next bytes of the file; they need not outlive the call.
  using Put = std::function<Status(std::string_view bytes)>;

  virtual ~RowFormat() = default;
  // In front of all rows.
  virtual Status Begin(const Put& put) = 0;
  // For each part of a result's rows, in the order of the output; `first`: a result begins with it.
  virtual Status Add(std::string_view rows, bool first, const Put& put) = 0;
  // Behind the last row.
  virtual Status End(const Put& put) = 0;
  // About how many bytes it puts beside these rows.
  virtual uint64_t Around(const RowsAhead& /*rows*/) const { return 0; }
  // Of a format that puts the rows of several results together: in which group of them those of the
  // last result are, from 0. nullopt: not known yet, or it has none.
  virtual std::optional<uint64_t> RowGroup() const { return std::nullopt; }
};

// What stands in front of rows, where a format has a place for it.
struct RowHeads {
  std::string line;                  // that the job's DataFrames told, with its line end, or empty
  std::vector<std::string> columns;  // of the output
  std::vector<parquet::Column> typed;  // the same of kParquet
};

std::unique_ptr<RowFormat> MakeRowFormat(api::OutputFormat format, RowHeads heads);

}  // namespace parallelrun::output
