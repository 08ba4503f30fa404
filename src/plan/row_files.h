// Opens the files of an input of rows, each for the splitter of its format and behind its header.
// Blocking I/O; not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "plan/csv_splitter.h"
#include "plan/planner.h"
#include "plan/row_splitter.h"
#include "store/store.h"

namespace parallelrun::plan {

// How the delimited text of an input is read.
CsvFormat FormatOf(const PlanInput& input);

class RowFiles {
 public:
  // `input` is of a kind that has rows. It and its store outlive this.
  RowFiles(const PlanInput& input, store::Store& store) : input_(input), store_(store) {}

  // Before the first Open: checks the format. With kFirstFile `header` is the one that was planned
  // with, which the rest of the plan must have too, whatever file is the first one by now; empty:
  // nothing is planned yet, and a listing of its own finds it. Errors are as Planner::Next gives
  // them, as are those of Open.
  Status Prepare(std::string header);

  struct Opened {
    std::unique_ptr<RowSplitter> splitter;  // behind the header; none: the file is gone by now
    std::string header;                     // with its line end, or empty
    uint64_t begin = 0;                     // where the rows do; delimited text only
    bool delimiter_at_end = false;          // of its rows, as the first ones say (table_header.h)
    // Of its slices; a compressed file is one.
    uint64_t SliceSize(uint64_t wanted) const;
  };
  Result<Opened> Open(const std::string& name) const;

  // Behind the last column of delimited rows.
  enum class RowEnd : uint8_t { kNothing, kDelimiter, kAsFirstRows };
  // What the reader of a slice must know of its file, as JSON. `compressed`: some of the files are.
  // kAsFirstRows is for slices that are whole files: the first rows of each say it.
  std::string Format(bool compressed, RowEnd end) const;
  // Whether its slices say what they may lose (RowSplitter::may_lose).
  bool TellMayLose() const;

 private:
  Status ReadFirstHeader();
  Status CheckColumns(const std::string& path, const std::string& header) const;
  Result<Opened> OpenDelimited(const std::string& name) const;

  const PlanInput& input_;
  store::Store& store_;
  std::string first_name_;  // kFirstFile, where it was looked for
  std::string first_header_;
};

// Whether a format says that files are compressed.
bool IsCompressed(std::string_view format);

}  // namespace parallelrun::plan
