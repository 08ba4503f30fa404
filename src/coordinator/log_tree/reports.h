// The reports that explain a job, in its log tree: made from what the ledger says, so that a later
// epoch writes the same. Text functions are pure; WriteReports publishes each file by rename.
// `plan` names items.
#pragma once

#include <string>

#include "base/time.h"
#include "coordinator/coordinator.h"
#include "coordinator/log_tree/log_folder.h"
#include "plan/plan_store.h"

namespace parallelrun::coordinator {

// job_result.txt: the root cause in its first line, then counts, output and the distinct errors.
std::string JobResult(const job::JobState& state, const job::FailureRules& rules,
                      plan::PlanStore& plan, const std::string& log_folder);

// job_error.txt and user/error.txt: the distinct errors, each with where it happened first.
std::string JobErrors(const job::JobState& state, plan::PlanStore& plan,
                      const std::string& log_folder);

// readme.txt: what lies where in the log tree.
std::string LogReadme();

// One line of job_progress_overview.<yyyymmdd>.txt.
std::string OverviewLine(const Coordinator& coordinator, Duration elapsed, WallTime now);

// "job_progress_overview.20261121.txt": a new file each day, UTC.
std::string OverviewName(WallTime now);

// Writes the reports of a job that has a verdict.
Status WriteReports(const job::JobState& state, const job::FailureRules& rules,
                    plan::PlanStore& plan, const LogFolder& folder);

}  // namespace parallelrun::coordinator
