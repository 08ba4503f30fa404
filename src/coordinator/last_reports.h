// The reports that a coordinator writes once its job is over.
#pragma once

#include <optional>
#include <string>

#include "base/time.h"
#include "coordinator/log_tree/log_folder.h"
#include "coordinator/page/waits.h"
#include "job/job_state.h"
#include "job/losses.h"
#include "ledger/ledger.h"

namespace parallelrun::coordinator {

struct EndedJob {
  const job::JobState& state;  // which does not change any more
  const job::FailureRules& rules;
  const ledger::Ledger& ledger;
  std::optional<Waits::Times> waits;  // none, if this epoch has not seen all of them
  bool dead_letters = false;          // told of in a file of their own
};

// Reads the whole ledger, so not on the loop's thread. One that cannot be written does not keep the
// others from it. Says what was wrong, in a line; "": nothing.
std::string WriteLastReports(const EndedJob& ended, const LogFolder& folder, WallTime now);

}  // namespace parallelrun::coordinator
