// The defaults that depend on other fields; the constant ones stand in job.h. Pure.
#pragma once

#include "api/job.h"

namespace parallelrun {

// Fills what is unset: empty paths and volumes, zero sizes and durations, null resources of the
// coordinator. What is set stays; a second call changes nothing.
void FillDefaults(Job& job);

// spec.nodeRestartLimit, or 3 for each node of the highest nodeCount that the job ever had.
int64_t NodeRestartLimit(const JobSpec& spec, int32_t highest_node_count);

}  // namespace parallelrun
