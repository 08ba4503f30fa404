// Results whose staged side files are gone before they were published: somebody has removed them
// while the run stood still. A person who continues the run has these mini-batches run again, as
// nothing else could bring the files back. Blocking I/O, no state.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "job/job_state.h"
#include "ledger/ledger.h"

namespace parallelrun::coordinator {

// By process, as records take them. `state` is what the ledger says. A file is there where one of
// its size is in the folder of its attempt, or in its place already.
Result<std::vector<job::AgainRecord>> ResultsWithoutSideFiles(const Files& files,
                                                              const ledger::Ledger& ledger,
                                                              const job::JobState& state,
                                                              const std::string& output_folder,
                                                              const std::string& staging);

}  // namespace parallelrun::coordinator
