// Results whose process has not closed: what its shutdown() was to write may be missing, so a
// person who continues the run has them made anew (docs/ledger.md, record "again"). Blocking I/O,
// no state.
#pragma once

#include <vector>

#include "base/error.h"
#include "job/job_state.h"
#include "ledger/ledger.h"

namespace parallelrun::coordinator {

// For each process that has results and did not close, which results these are: read from the
// ledger, since memory does not keep who gave which. `state` is what that ledger says.
Result<std::vector<job::AgainRecord>> ResultsToRunAgain(const ledger::Ledger& ledger,
                                                        const job::JobState& state);

}  // namespace parallelrun::coordinator
