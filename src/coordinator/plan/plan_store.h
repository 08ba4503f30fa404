// PlanStore makes the Work of a mini-batch from the plan chunks in the ledger, so that names never
// stay in memory: it keeps the few chunks that were used last. Not thread-safe.
#pragma once

#include <cstdint>
#include <list>
#include <string>
#include <utility>

#include "base/error.h"
#include "coordinator/ledger/ledger.h"
#include "job/job_state.h"
#include "job/work.h"

namespace parallelrun {

struct PlannedWork {
  std::string work;  // with the number of failed attempts set
  uint64_t digest = 0;
};

class PlanStore {
 public:
  explicit PlanStore(const Ledger& ledger) : ledger_(ledger) {}

  Result<PlannedWork> Work(const JobState& state, BatchId id);
  // kNotFound when the mini-batch is not planned.
  Result<uint64_t> Digest(const JobState& state, BatchId id);

 private:
  static constexpr size_t kKept = 4;
  Result<const WorkMaker*> MakerOf(const JobState::Chunk& chunk);

  const Ledger& ledger_;
  std::list<std::pair<BatchId, WorkMaker>> makers_;  // by first id, last used first
};

}  // namespace parallelrun
