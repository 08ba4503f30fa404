// Publishing (docs/ledger.md): the rows of all succeeded mini-batches, read back from the ledger in
// order, joined as their format says, into the sink, which shows exactly one complete output, or
// none. What is not this run's own is not replaced unless a person has said so. Blocking; runs on a
// thread of its own while the state does not change any more.
#pragma once

#include <string>

#include "api/job.h"
#include "base/error.h"
#include "coordinator/ledger/ledger.h"
#include "coordinator/sink.h"
#include "job/job_state.h"

namespace parallelrun {

enum class RowOrder { kMiniBatch, kCompletion };

struct PublishOptions {
  RowOrder order = RowOrder::kMiniBatch;
  OutputFormat format = OutputFormat::kText;
};

struct Publication {
  Published published;
  std::string set_aside;  // where what stood in the output's place is now; empty: nothing did
};

// kNoSpace: nothing was published, a later call starts over. kStale: a newer epoch took the token
// away, so this coordinator is superseded. kExists: something that is not this run's is in the
// output's place, or another run has claimed it. Memory stays flat in the size of
// the output; by completion it takes 4 bytes a mini-batch.
Result<Publication> PublishOutput(Sink& sink, const Ledger& ledger, const JobState& state,
                                  const PublishOptions& options);

}  // namespace parallelrun
