// The mini-batches of a job in the order of its input, as a map of at most 1,024 cells: when they
// are full, each two become one. Pure; not thread-safe; 16 kB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "job/job_state.h"

namespace parallelrun::coordinator {

class BatchMap {
 public:
  static constexpr size_t kMost = 1024;

  struct Cell {
    uint64_t succeeded = 0;
    uint64_t failed = 0;
    bool operator==(const Cell&) const = default;
  };

  // `id` has been planned: whether it is settled or not, its cell is there.
  void Plan(job::BatchId id) { (void)CellOf(id); }
  // A whole mini-batch is settled; called once for each.
  void Settle(job::BatchId id, bool succeeded);

  uint64_t per_cell() const { return per_cell_; }  // mini-batches; the last cell may have fewer
  const std::vector<Cell>& cells() const { return cells_; }

 private:
  Cell& CellOf(job::BatchId id);

  uint64_t per_cell_ = 1;
  std::vector<Cell> cells_;
};

// What the state says of all that is planned.
BatchMap MapOf(const job::JobState& state);

}  // namespace parallelrun::coordinator
