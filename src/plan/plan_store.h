// PlanStore makes the Work of a mini-batch from the plan chunks in the ledger, so that names never
// stay in memory: it keeps the few chunks that were used last. Whoever must not wait for a disk
// asks for what is AtHand before it asks for more. Not thread-safe.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "job/job_state.h"
#include "job/work.h"
#include "ledger/ledger.h"
#include "plan/planner.h"

namespace parallelrun::plan {

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

// Where the bytes of a plan chunk come from.
class ChunkSource {
 public:
  virtual ~ChunkSource() = default;
  // Whether Take answers at once, if only with an error. False: it is being read, and whoever owns
  // the source is told when it came.
  virtual bool Ask(const job::Place& place) = 0;
  virtual Result<std::string> Take(const job::Place& place) = 0;
};

class PlanStore {
 public:
  // `inputs` are those of the plan: how their tables are read beside what the plan says. Reads the
  // ledger itself, whenever a chunk is wanted.
  explicit PlanStore(const ledger::Ledger& ledger, std::vector<PlanInput> inputs = {})
      : own_(SourceOf(ledger)), source_(*own_), inputs_(std::move(inputs)) {}
  explicit PlanStore(ChunkSource& source, std::vector<PlanInput> inputs = {})
      : source_(source), inputs_(std::move(inputs)) {}

  // Whether what follows answers without a wait for the chunk of a planned mini-batch. False: the
  // chunk is being read.
  bool AtHand(const job::JobState& state, job::BatchId id);

  Result<PlannedWork> Work(const job::JobState& state, job::BatchId id);
  // kNotFound when the mini-batch is not planned.
  Result<uint64_t> Digest(const job::JobState& state, job::BatchId id);
  Result<std::vector<PlannedItem>> Items(const job::JobState& state, job::BatchId id);

 private:
  static constexpr size_t kKept = 4;
  static std::unique_ptr<ChunkSource> SourceOf(const ledger::Ledger& ledger);
  Result<std::string> Make(const job::JobState& state, job::BatchId id);
  Result<const job::WorkMaker*> MakerOf(const job::JobState& state,
                                        const job::JobState::Chunk& chunk);
  Status AddReading(const job::JobState& state, job::WorkMaker& maker) const;

  const std::unique_ptr<ChunkSource> own_;
  ChunkSource& source_;
  const std::vector<PlanInput> inputs_;
  std::list<std::pair<job::BatchId, job::WorkMaker>> makers_;  // by first id, last used first
};

}  // namespace parallelrun::plan
