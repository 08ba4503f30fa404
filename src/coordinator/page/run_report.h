// report.html of the log tree (docs/report.md), made of the ledger, streamed: its memory does not
// grow with the job. Blocking I/O.
#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "base/time.h"
#include "coordinator/log_tree/log_folder.h"
#include "coordinator/page/waits.h"
#include "job/job_state.h"
#include "job/losses.h"
#include "ledger/ledger.h"
#include "plan/plan_store.h"

namespace parallelrun::coordinator {

// `waits`: of the whole run, if that is known. `plan` names items.
Status WriteRunReport(const ledger::Ledger& ledger, const job::JobState& state,
                      const job::FailureRules& rules, plan::PlanStore& plan,
                      const LogFolder& folder, const std::optional<Waits::Times>& waits,
                      WallTime now);

}  // namespace parallelrun::coordinator
