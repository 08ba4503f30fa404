// What became of each mini-batch: 24 bytes each, since ten million of them are held at once.
// Not thread-safe; reading is, while nobody writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "job/ids.h"

namespace parallelrun::job {

struct MiniBatch {
  // kSplit: its pieces stand for it, and at least one of them is not settled. Once all are, the
  // whole one has succeeded if any of them did.
  enum class State : uint8_t { kPending, kSucceeded, kFailed, kSplit };
  Place rows;   // of the result (its last part); length 0: no rows
  Fence fence;  // of the accepted result or of the failed attempt that was the last
  uint32_t items = 0;
  uint32_t items_missing = 0;    // of the result: run() returned no element for them
  uint32_t items_skipped = 0;    // of the result: left out as unreadable
  uint32_t failed_attempts = 0;  // in this generation
  uint16_t losses = 0;
  State state = State::kPending;

  bool operator==(const MiniBatch&) const = default;
};

// Whole mini-batches by their ids, which are dense. A mini-batch is a value: it is read, changed
// and put back, since what lies here has no address of its own.
//
// A cell has as many bits for a field as nearly every mini-batch needs. One that has more (a log
// of over 16 TiB, more than 4 million items, the 4,096th epoch) is wide: it lies whole in a map.
// So the bits bound memory, and never what a job may be. Cells lie in pages, because one array
// that grows is there twice while it is copied: that was half of a coordinator's peak.
class MiniBatches {
 public:
  size_t size() const { return size_; }
  // The next id, which nothing has become of yet.
  void Add(uint32_t items);
  // `id` must be below size(), here and below.
  MiniBatch operator[](BatchId id) const {
    const Cell& cell = At(id);
    return cell.wide != 0 ? wide_.at(id) : Unpack(cell);
  }
  // Single fields, for those who ask for them millions of times.
  MiniBatch::State StateOf(BatchId id) const {
    const Cell& cell = At(id);
    return cell.wide != 0 ? wide_.at(id).state : static_cast<MiniBatch::State>(cell.state);
  }
  Place RowsOf(BatchId id) const {
    const Cell& cell = At(id);
    return cell.wide != 0 ? wide_.at(id).rows : RowsOf(cell);
  }
  void Put(BatchId id, const MiniBatch& batch);
  // How many do not fit into their cells.
  size_t wide() const { return wide_.size(); }

 private:
  static constexpr size_t kPage = 16'384;

  struct Cell {
    uint64_t rows_offset : 44 = 0;
    uint64_t rows_epoch : 12 = 0;
    uint64_t failed_attempts : 8 = 0;

    uint64_t fence_number : 36 = 0;
    uint64_t fence_epoch : 12 = 0;  // not always that of the rows, which may have been copied
    uint64_t losses : 8 = 0;
    uint64_t items_skipped : 5 = 0;
    uint64_t state : 2 = 0;
    uint64_t wide : 1 = 0;  // the other fields mean nothing then

    uint64_t rows_length : 26 = 0;  // a record is below 64 MiB
    uint64_t items : 22 = 0;
    uint64_t items_missing : 16 = 0;
  };
  static_assert(sizeof(Cell) == 24);

  const Cell& At(BatchId id) const { return pages_[id / kPage][id % kPage]; }
  static Cell Pack(const MiniBatch& batch);
  static Place RowsOf(const Cell& cell) {
    return {static_cast<uint32_t>(cell.rows_epoch), cell.rows_offset,
            static_cast<uint32_t>(cell.rows_length)};
  }
  static MiniBatch Unpack(const Cell& cell) {
    return {RowsOf(cell),
            {static_cast<uint32_t>(cell.fence_epoch), cell.fence_number},
            static_cast<uint32_t>(cell.items),
            static_cast<uint32_t>(cell.items_missing),
            static_cast<uint32_t>(cell.items_skipped),
            static_cast<uint32_t>(cell.failed_attempts),
            static_cast<uint16_t>(cell.losses),
            static_cast<MiniBatch::State>(cell.state)};
  }

  std::vector<std::unique_ptr<Cell[]>> pages_;
  size_t size_ = 0;
  std::unordered_map<BatchId, MiniBatch> wide_;
};

}  // namespace parallelrun::job
