// The Work of one mini-batch, or of one item of it, as the ledger of a run has planned it. Reads
// the ledger without touching it; a coordinator may be at work meanwhile. Blocking I/O.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "job/ids.h"
#include "plan/planner.h"

namespace parallelrun::cli {

struct WantedWork {
  std::optional<job::BatchId> mini_batch;
  std::string item;  // in place of it: a file's path, or as much of its end as only one has
};

struct FoundWork {
  job::BatchId mini_batch = 0;
  uint32_t items = 0;
  std::string work;  // docs/worker-protocol.md, "Work"
};

// `inputs` are those of the job. Of files an item is one of them; of tables it is a file, and with
// it the mini-batch that holds its rows. kNotFound and kInvalid say what there is instead.
Result<FoundWork> FindWork(const Files& files, const std::string& state_folder,
                           const std::vector<plan::PlanInput>& inputs, const WantedWork& wanted);

}  // namespace parallelrun::cli
