// Internal to the planner: which field of a job cures what the API server, a kubelet or the
// scheduler says. Their words are shown beside it, and decide nothing else. Pure.
#pragma once

#include <string>

#include "api/job.h"
#include "operator/builders/objects.h"
#include "operator/observed.h"

namespace parallelrun::operators {

// Of an object that a ResourceQuota has refused: room, or amounts that the object does not name.
std::string CureOfQuota(const JobIdentity& job, const ApplyFailure& refused);

// Of an object that a LimitRange has refused, or that does not fit the limits which one has given
// it; "" if none has.
std::string CureOfLimitRange(const api::JobSpec& spec, const JobIdentity& job,
                             const ApplyFailure& refused);

// Of an image that a host has not got: `runtime` is that of our own programs, which the chart
// names.
std::string CureOfImage(const api::JobSpec& spec, bool runtime, const std::string& message);

// Of a pod that the scheduler has no host for.
std::string CureOfUnschedulable(const api::JobSpec& spec, PodRole role, const std::string& message);

}  // namespace parallelrun::operators
