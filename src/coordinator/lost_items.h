// The items that a job has lost, by name, for people. Not thread-safe: it reads the plan.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "job/job_state.h"
#include "job/losses.h"
#include "plan/plan_store.h"

namespace parallelrun::coordinator {

// The first `most` of them in the order of the input: files, ranges of rows, ranks, and
// mini-batches of which only run() knows what it left out. Escaped. A part of the plan that cannot
// be read is left out.
std::vector<std::string> FirstLostItems(const job::JobState& state, const job::FailureRules& rules,
                                        plan::PlanStore& plan, size_t most);

}  // namespace parallelrun::coordinator
