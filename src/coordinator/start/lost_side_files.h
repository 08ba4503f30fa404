// Results whose staged side files are gone before they were published: somebody has removed them
// while the run stood still. A person who continues the run has these mini-batches run again, as
// nothing else could bring the files back. Blocking I/O, no state.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "job/job_state.h"
#include "job/side_list.h"
#include "ledger/ledger.h"

namespace parallelrun::coordinator {

// Of each of some lists: whether all of its files are where their attempt has left them, or in
// their places already.
using HaveSideFiles =
    std::function<Result<std::vector<bool>>(const std::vector<job::SideList>& lists)>;

// By size, in the folder of the attempt, or in its place.
HaveSideFiles HaveStagedFiles(const Files& files, const std::string& output_folder,
                              const std::string& staging);

// By process, as records take them. `state` is what the ledger says.
Result<std::vector<job::AgainRecord>> ResultsWithoutSideFiles(const ledger::Ledger& ledger,
                                                              const job::JobState& state,
                                                              const HaveSideFiles& have);

}  // namespace parallelrun::coordinator
