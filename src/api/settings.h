// The part of a job that decides what a mini-batch id means: a ledger is continued only by a job
// for which this is the same. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/job.h"
#include "base/error.h"

namespace parallelrun {

// Canonical JSON of the inputs, the mini-batch size and the partition keys. `job` has its defaults.
std::string PlanSettings(const Job& job);

// What differs between two such texts, as "spec.miniBatchSize: 10 -> 20"; empty when they mean the
// same. kCorrupt when one of them is no JSON object.
Result<std::vector<std::string>> Differences(std::string_view before, std::string_view after);

}  // namespace parallelrun
