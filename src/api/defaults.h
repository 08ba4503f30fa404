// The defaults that depend on other fields; the constant ones stand in job.h. Pure.
#pragma once

#include "api/job.h"
#include "api/parse.h"

namespace parallelrun::api {

// Fills what is unset: empty paths and volumes, the place of the state, zero sizes and durations,
// null resources of the coordinator. What is set stays; a second call changes nothing.
void FillDefaults(Job& job, Target target);

// Of a job that says nothing.
JobSpec DefaultSpec();

// So many deaths of nodes it takes at most until a mini-batch that ends its node has failed: one
// that is nobody's fault yet, 11 until it is alone, of 2,048 that a node may hold, and 10 losses.
inline constexpr int64_t kDeathsOfOne = 22;

// spec.initTimeoutSeconds; or half an hour, for models that take long to load, and no less than
// what a job allows without progress.
Duration InitTimeout(const JobSpec& spec);

// spec.nodeRestartLimit, or 3 for each node of the highest nodeCount that the job ever had, and
// what it takes to find one mini-batch more than the `lost` that ended their nodes so far.
int64_t NodeRestartLimit(const JobSpec& spec, int32_t highest_node_count, int64_t lost);

}  // namespace parallelrun::api
