// PlanStore makes the Work of a mini-batch from the plan chunks in the ledger, so that names never
// stay in memory: it keeps the few chunks that were used last. Not thread-safe.
#pragma once

#include <cstdint>
#include <list>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "coordinator/ledger/ledger.h"
#include "coordinator/plan/planner.h"
#include "job/job_state.h"
#include "job/work.h"

namespace parallelrun {

struct PlannedWork {
  std::string work;  // with the number of failed attempts set
  uint64_t digest = 0;
};

// Where an item of a mini-batch is, for people; rows that lie together are one.
struct PlannedItem {
  std::string path;         // empty: a rank
  uint64_t first_item = 0;  // in the whole input
  uint32_t rows = 1;
  // Rows only
  bool in_file = false;
  uint64_t offset = 0;  // of the slice that holds them; Parquet: its first row group
  uint64_t length = 0;
  uint64_t first_row = 0;  // in that slice
};

class PlanStore {
 public:
  // `inputs` are those of the plan: how their tables are read beside what the plan says.
  explicit PlanStore(const Ledger& ledger, std::vector<PlanInput> inputs = {})
      : ledger_(ledger), inputs_(std::move(inputs)) {}

  Result<PlannedWork> Work(const JobState& state, BatchId id);
  // kNotFound when the mini-batch is not planned.
  Result<uint64_t> Digest(const JobState& state, BatchId id);
  Result<std::vector<PlannedItem>> Items(const JobState& state, BatchId id);

 private:
  static constexpr size_t kKept = 4;
  Result<std::string> Make(const JobState& state, BatchId id);
  Result<const WorkMaker*> MakerOf(const JobState& state, const JobState::Chunk& chunk);
  Status AddReading(const JobState& state, WorkMaker& maker) const;

  const Ledger& ledger_;
  const std::vector<PlanInput> inputs_;
  std::list<std::pair<BatchId, WorkMaker>> makers_;  // by first id, last used first
};

}  // namespace parallelrun
