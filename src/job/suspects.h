// Suspects: pending mini-batches that were held by nodes that died, those that may have most
// company first. Pure, not thread-safe.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "job/ids.h"

namespace parallelrun::job {

struct Suspect {
  BatchId id = 0;
  uint32_t company = 1;  // how many mini-batches its node may hold at most
  uint32_t losses = 0;
};

class Suspects {
 public:
  // Also when it is there already, and more is held against it now.
  void Add(const Suspect& suspect) {
    Remove(suspect.id);
    const Rank rank{UINT32_MAX - suspect.company, suspect.losses};
    ranks_.emplace(suspect.id, rank);
    order_.insert({rank, suspect.id});
  }
  void Remove(BatchId id) {
    const auto found = ranks_.find(id);
    if (found == ranks_.end()) return;
    order_.erase({found->second, id});
    ranks_.erase(found);
  }
  bool Contains(BatchId id) const { return ranks_.contains(id); }
  bool empty() const { return ranks_.empty(); }
  size_t size() const { return ranks_.size(); }
  // The one that is likeliest to do no harm: of those that may have most company the one with the
  // fewest losses. There must be one.
  Suspect First() const {
    const auto& [rank, id] = *order_.begin();
    return {id, UINT32_MAX - rank.apart, rank.losses};
  }

 private:
  struct Rank {
    uint32_t apart = 0;
    uint32_t losses = 0;
    auto operator<=>(const Rank&) const = default;  // NOLINT(modernize-use-nullptr)
  };
  std::map<BatchId, Rank> ranks_;
  std::set<std::pair<Rank, BatchId>> order_;
};

}  // namespace parallelrun::job
