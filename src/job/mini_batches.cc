#include "job/mini_batches.h"

namespace parallelrun::job {

void MiniBatches::Add(uint32_t items) {
  if (size_ % kPage == 0) pages_.push_back(std::make_unique<Cell[]>(kPage));
  MiniBatch batch;
  batch.items = items;
  Put(size_++, batch);
}

void MiniBatches::Put(BatchId id, const MiniBatch& batch) {
  Cell& cell = pages_[id / kPage][id % kPage];
  const bool was_wide = cell.wide != 0;
  cell = Pack(batch);
  // Asked of the cell itself: a list of bounds beside the fields could miss one.
  if (Unpack(cell) == batch) {
    if (was_wide) wide_.erase(id);
    return;
  }
  cell.wide = 1;
  wide_[id] = batch;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"  // what a field has no room for is cut off

MiniBatches::Cell MiniBatches::Pack(const MiniBatch& batch) {
  Cell cell;
  cell.rows_offset = batch.rows.offset;
  cell.rows_epoch = batch.rows.epoch;
  cell.rows_length = batch.rows.length;
  cell.fence_epoch = batch.fence.epoch;
  cell.fence_number = batch.fence.number;
  cell.items = batch.items;
  cell.items_missing = batch.items_missing;
  cell.items_skipped = batch.items_skipped;
  cell.failed_attempts = batch.failed_attempts;
  cell.losses = batch.losses;
  cell.state = static_cast<uint64_t>(batch.state);
  return cell;
}

#pragma GCC diagnostic pop

}  // namespace parallelrun::job
