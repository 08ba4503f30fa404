// What cuts one file of rows into slices, from front to back. Blocking I/O; not thread-safe.
#pragma once

#include <cstdint>
#include <optional>

#include "base/error.h"
#include "job/plan_chunk.h"
#include "store/store.h"

namespace parallelrun::plan {

class RowSplitter {
 public:
  virtual ~RowSplitter() = default;

  // The file as it was when it was opened; bytes added later are not read.
  virtual const store::Found& found() const = 0;
  // Then it is one slice: offsets are those of what it holds.
  virtual bool compressed() const { return false; }
  // Goes on behind a slice that ended at `offset`; 0 is the begin of the file.
  virtual void Seek(uint64_t offset) = 0;
  // The next slice of about `size` bytes (JSON lines: of `size` lines), with at least one row;
  // nullopt at the end.
  virtual Result<std::optional<job::Slice>> Next(uint64_t size) = 0;
  // Of delimited text, where it was asked for: which columns of the slice that was given last may
  // hold what a number loses (job/may_lose.h).
  virtual uint64_t may_lose() const { return 0; }
};

}  // namespace parallelrun::plan
