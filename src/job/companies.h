// Companies: with how many others a mini-batch may be on one node, for those that a node held when
// it died. Each further death halves that, so that the one that ends nodes is alone after a few.
// Pure, not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>

#include "job/ids.h"
#include "job/records.h"

namespace parallelrun::job {

inline constexpr uint32_t kAnyCompany = UINT32_MAX;

class Companies {
 public:
  // A node died with it. The least that was ever said counts.
  void Add(BatchId id, uint32_t most) {
    uint32_t& known = most_.emplace(id, most).first->second;
    known = std::min(known, most);
  }
  // Nothing is held against it any more.
  void Forget(BatchId id) { most_.erase(id); }

  // How many mini-batches a node may hold at most while it holds this one.
  uint32_t Of(BatchId id) const {
    const auto found = most_.find(id);
    return found == most_.end() || found->second == kHeldOnce ? kAnyCompany : found->second;
  }
  // Its node died while it held it. Once is no suspicion: pods are killed, and machines are lost.
  bool HeldAtDeath(BatchId id) const { return most_.contains(id); }

 private:
  std::map<BatchId, uint32_t> most_;
};

}  // namespace parallelrun::job
