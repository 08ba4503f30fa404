// Parts of a job that one which continues its ledger is compared with: what decides what a
// mini-batch id means, which must be the same, and what decides what run() does. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "api/job.h"
#include "base/error.h"

namespace parallelrun {

// Canonical JSON of the inputs (without what may be said anew, as the types written for columns),
// the folders of their volumes (by name), the mini-batch size and the partition keys. `job` has its
// defaults.
std::string PlanSettings(const Job& job, const std::map<std::string, std::string>& volumes);

// Canonical JSON of the entry script and its arguments; `job` is JSON text.
std::string ScriptSettings(std::string_view job);

// Canonical JSON of what people wrote for the columns (dtypes, badRows), by input, which a retry
// may take anew; `job` is JSON text.
std::string WrittenTypes(std::string_view job);

// What differs between two such texts, as "spec.miniBatchSize: 10 -> 20"; empty when they mean the
// same. kCorrupt when one of them is no JSON object.
Result<std::vector<std::string>> Differences(std::string_view before, std::string_view after);

}  // namespace parallelrun
