// ReadyOrder: what anybody may get, whole mini-batches and pieces, in the order in which it is
// granted. What was granted before goes before what never was, and pieces between the two: what has
// waited longest is done first, and few are open at once. Pure; not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>

#include "job/ids.h"
#include "job/ready_ids.h"

namespace parallelrun::job {

class ReadyOrder {
 public:
  // Adding twice is adding once; what is not there need not be removed.
  void Add(BatchId id) {
    if (IsPiece(id)) {
      pieces_.insert(id);
    } else {
      whole_.Add(static_cast<uint32_t>(id));
    }
  }
  void Remove(BatchId id) {
    if (IsPiece(id)) {
      pieces_.erase(id);
    } else {
      whole_.Remove(static_cast<uint32_t>(id));
    }
  }
  bool Contains(BatchId id) const {
    return IsPiece(id) ? pieces_.contains(id) : whole_.Contains(static_cast<uint32_t>(id));
  }
  uint64_t size() const { return whole_.size() + pieces_.size(); }

  std::optional<BatchId> First() const {
    const std::optional<uint32_t> lowest = whole_.First();
    if (lowest && (*lowest < fresh_ || pieces_.empty())) return *lowest;
    if (pieces_.empty()) return std::nullopt;
    return *pieces_.begin();
  }
  // It is the first, and was granted.
  void Granted(BatchId id) {
    if (!IsPiece(id)) fresh_ = std::max(fresh_, id + 1);
    Remove(id);
  }

 private:
  ReadyIds whole_;
  std::set<BatchId> pieces_;
  BatchId fresh_ = 0;  // never granted: whole ids from here on
};

}  // namespace parallelrun::job
