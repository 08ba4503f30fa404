// What the items of a mini-batch are called, for people: they know their files, not the numbers of
// mini-batches. Not thread-safe: it reads the plan.
#pragma once

#include <string>

#include "job/job_state.h"
#include "plan/plan_store.h"

namespace parallelrun::coordinator {

// "/data/a.png and 9 more", "rows of /data/a.csv", not escaped; "" for a rank, and where the plan
// cannot be read.
std::string ItemsOfMiniBatch(const job::JobState& state, plan::PlanStore& plan, job::BatchId id);

}  // namespace parallelrun::coordinator
