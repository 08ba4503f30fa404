#include "coordinator/page/batch_map.h"

namespace parallelrun::coordinator {

void BatchMap::Settle(job::BatchId id, bool succeeded) {
  Cell& cell = CellOf(id);
  ++(succeeded ? cell.succeeded : cell.failed);
}

BatchMap::Cell& BatchMap::CellOf(job::BatchId id) {
  while (id / per_cell_ >= kMost) {
    for (size_t i = 0; i < cells_.size(); ++i) {
      if (i % 2 == 0) {
        cells_[i / 2] = cells_[i];
      } else {
        cells_[i / 2].succeeded += cells_[i].succeeded;
        cells_[i / 2].failed += cells_[i].failed;
      }
    }
    cells_.resize((cells_.size() + 1) / 2);
    per_cell_ *= 2;
  }
  const size_t index = id / per_cell_;
  if (index >= cells_.size()) cells_.resize(index + 1);
  return cells_[index];
}

BatchMap MapOf(const job::JobState& state) {
  BatchMap map;
  const size_t planned = state.batches().size();
  if (planned > 0) map.Plan(planned - 1);
  for (job::BatchId id = 0; id < planned; ++id) {
    const job::MiniBatch::State became = state.batches().StateOf(id);
    if (became == job::MiniBatch::State::kSucceeded) map.Settle(id, true);
    if (became == job::MiniBatch::State::kFailed) map.Settle(id, false);
  }
  return map;
}

}  // namespace parallelrun::coordinator
