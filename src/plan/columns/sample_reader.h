// Reads the files of a sample (sample.h): what each says of the columns. Blocking I/O; Read may be
// called by several threads at once, for files are looked at each for itself and what was seen of
// them is put together in their order (seen_rows.h). Memory for each call: 256 KiB for each block
// that is read at once, and up to twice the longest row, 8 MiB, for each of its readings; with what
// was seen of each column.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/error.h"
#include "plan/columns/block_types.h"
#include "plan/columns/sample.h"
#include "plan/columns/seen_rows.h"
#include "plan/planner.h"
#include "plan/row_files.h"
#include "plan/text_reader.h"
#include "store/store.h"

namespace parallelrun::plan {

// What was read of one file.
struct SampledFile {
  std::string name;
  RowFiles::Opened opened;             // header and what is known of it; no splitter: it is gone
  std::vector<std::string> columns;    // that it has; none: nothing but blank lines
  std::vector<size_t> order;           // which of the table's each of these is
  SeenRows seen;                       // in the order of its own columns
  std::string front;                   // bytes of its first block, for DialectAdvice; may be empty
  std::unique_ptr<TextReader> reader;  // of a compressed one, of which nothing is read yet
  Status status;                       // what is seen was before it failed
};

class SampleReader {
 public:
  // `input` is of delimited text; the store outlives this. With `check_rows` a row that a run would
  // refuse is looked for. Reading fails soon once `stop` was asked for, in place of `input.stop`.
  SampleReader(PlanInput input, store::Store& store, bool check_rows, std::stop_token stop);

  // Before all others.
  Status Prepare();

  // The blocks of a file, by up to `threads` threads at once. `table`: the columns of the input,
  // if they are known yet; else they are those of this file. Stops at the first bad row.
  SampledFile Read(const std::string& name, uint64_t size, const std::vector<SampleBlock>& blocks,
                   const std::vector<std::string>& table, size_t threads) const;

  // Of a file with a `reader` the front of its text, until more than `most` bytes were taken: how
  // much it holds nobody can tell without reading it. Says how many they were.
  Result<uint64_t> ReadFront(SampledFile& file, uint64_t most) const;

  // As people are told where it is.
  std::string ShownAs(const std::string& name) const;

 private:
  struct Block {
    std::optional<SeenRows> seen;  // none: nothing can be said of it
    std::string front;
    Status status;
  };

  Status TakeColumns(const std::vector<std::string>& table, SampledFile& file) const;
  Status ReadBlocks(uint64_t size, const std::vector<SampleBlock>& blocks, size_t threads,
                    SampledFile& file) const;
  Result<std::unique_ptr<TextReader>> OpenText(const std::string& name) const;
  Block ReadBlock(TextReader& reader, BlockPlace place, uint64_t end, size_t columns) const;
  BadRowsWanted BadOnes() const;

  const PlanInput input_;
  store::Store& store_;
  const bool check_rows_;
  const RowSyntax format_;
  const MissingWords missing_;
  RowFiles files_;
};

}  // namespace parallelrun::plan
