// failures.jsonl and dead-letter.jsonl: the items that failed, one a line (docs/logs.md), from what
// the ledger and the uploaded error logs say. Blocking I/O; memory grows with the size of one error
// log.
#pragma once

#include <string>

#include "base/error.h"
#include "base/files.h"
#include "coordinator/log_tree/log_folder.h"
#include "job/job_state.h"
#include "job/losses.h"
#include "ledger/ledger.h"
#include "plan/plan_store.h"

namespace parallelrun::coordinator {

// Publishes the files in `folder`, or removes them when nothing has failed. `state` is what the
// ledger says.
Status WriteFailedItems(const ledger::Ledger& ledger, const job::JobState& state,
                        const job::FailureRules& rules, plan::PlanStore& plan,
                        const LogFolder& folder, bool dead_letters);

}  // namespace parallelrun::coordinator
