// ResultParts: what stands in front of a result in the ledger, under the same fence: its rows but
// for the last of them, where they are long, and how many of its items were left out. What is of
// another fence belongs to an attempt that was given up. Part of JobState. Pure; not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "job/ids.h"
#include "job/records.h"
#include "job/side_list.h"

namespace parallelrun::job {

class ResultParts {
 public:
  // `lists_side_files`: the rows of a result begin with that line.
  void Add(const RowsRecord& part, const Place& rows, bool lists_side_files);
  void Add(const SkippedRecord& skipped) { skipped_[skipped.id] = {skipped.fence, skipped.items}; }

  // The line of side files that the rows of this result begin with; "": it has not ended.
  std::string TakeSideFiles(const ResultRecord& result);
  // The result is there: what is of another fence goes. Returns how many items were left out.
  uint32_t Complete(const ResultRecord& result);
  // Nothing of the mini-batch counts any more.
  void Forget(BatchId id);

  // Of the parts of its rows; 0 where there are none with this fence.
  uint64_t Bytes(BatchId id, const Fence& fence) const;
  // In front of the last rows of a result that is there, in order.
  const std::vector<Place>& Places(BatchId id) const;

 private:
  struct Parts {
    Fence fence;
    uint64_t bytes = 0;
    std::vector<Place> places;
    SideLine side_files = {};
  };
  struct Skipped {
    Fence fence;
    uint32_t items = 0;
  };

  std::map<BatchId, Parts> parts_;      // few: only results above one part
  std::map<BatchId, Skipped> skipped_;  // until the result that follows
};

}  // namespace parallelrun::job
