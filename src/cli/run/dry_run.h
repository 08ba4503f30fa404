// `parallelrun run --dry-run`: what a run would take, without starting anything or writing
// anything. It makes the plan that the coordinator would make.
#pragma once

#include <cstdint>
#include <string>

#include "api/selection.h"
#include "base/error.h"
#include "cli/run/local_job.h"

namespace parallelrun::cli {

struct PlanSize {
  uint64_t files = 0;
  uint64_t bytes = 0;  // of these files, whole, also where a table is taken in part
  uint64_t items = 0;  // files, or rows of tables
  uint64_t batches = 0;
};

// Lists the inputs, and reads tables, to the end: blocking I/O. Errors are those of Planner::Next.
Result<PlanSize> MeasurePlan(const LocalJob& job, const api::Selection& selection);

// For the user. Pure.
std::string DryRunText(const LocalJob& job, const PlanSize& plan);

}  // namespace parallelrun::cli
