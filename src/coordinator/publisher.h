// Publishing (docs/ledger.md): the rows of all succeeded mini-batches, read back from the ledger in
// order, into this epoch's token file, which is then renamed onto the output's name. The folder
// holds exactly one complete output, or none. Blocking; runs on a thread of its own while the state
// does not change any more.
#pragma once

#include <string>

#include "base/error.h"
#include "base/files.h"
#include "coordinator/ledger/ledger.h"
#include "job/job_state.h"

namespace parallelrun {

enum class RowOrder { kMiniBatch, kCompletion };

// kNoSpace: nothing was published, a later call starts over. kStale: a newer epoch took the token
// away, so this coordinator is superseded. Memory stays flat in the size of the output.
Result<Published> PublishOutput(Files& files, const Ledger& ledger, const JobState& state,
                                RowOrder order, const std::string& output_path);

}  // namespace parallelrun
