// `parallelrun verify`: whether a job's output still is what the job published.
#pragma once

#include <string>

#include "base/files.h"
#include "job/job_state.h"

namespace parallelrun::cli {

// `path` is an output file, the folder that holds it, or a state folder. The exit status: 0 whole,
// 1 damaged, or never published, in words; 2: there is no ledger to compare it with.
int VerifyOutput(const std::string& path);

// Prints how the output of the job in that state folder is; 0 or 1, as above. There must be one.
int PrintOutput(const Files& files, const std::string& state_folder, const job::JobState& state);

}  // namespace parallelrun::cli
