// Internal to the planner: claims that pods of a job wait for. What is wrong with one stands in its
// own events, and in nothing that a pod has. Pure.
#pragma once

#include "operator/plan/draft.h"

namespace parallelrun::operators {

// Adds an obstacle for each claim without a volume that speaks of it.
void FindUnboundClaims(Draft& draft);

}  // namespace parallelrun::operators
