// Where everything of a job lies, once its volumes are folders: on a cluster /mnt/<name>, locally
// what --volume says. Pure, thread-safe.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "api/job.h"
#include "base/error.h"
#include "coordinator/plan/planner.h"

namespace parallelrun {

using Volumes = std::map<std::string, std::string>;  // name to absolute folder

struct JobLayout {
  std::string output_folder;
  std::string output_path;  // of the appended file; empty with SummaryOnly
  std::string log_folder;
  std::string state_folder;
  std::vector<PlanInput> inputs;  // with rank mini-batches just one, which has no folder
  // What $(inputs.NAME), $(sideInputs.NAME) and $(output) stand for.
  std::map<std::string, std::string> placeholders;
  std::vector<ObjectStore> stores;  // that inputs name
  // Folders that no input may contain: output, logs and state.
  std::vector<std::string> forbidden;
};

// kInvalid names the field of a volume that is not mapped, or of an input that cannot be grouped by
// the partition keys.
Result<JobLayout> LayOut(const Job& job, const Volumes& volumes);

}  // namespace parallelrun
