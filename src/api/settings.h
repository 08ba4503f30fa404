// Parts of a job that one which continues its ledger is compared with: what decides what a
// mini-batch id means, which must be the same, and what decides what run() does. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "api/job.h"
#include "api/selection.h"
#include "base/error.h"

namespace parallelrun::api {

// Canonical JSON of the inputs (without what may be said anew, as the types written for columns),
// the folders of their volumes (by name), the mini-batch size, the partition keys, and what of the
// inputs is taken. `job` has its defaults.
std::string PlanSettings(const Job& job, const std::map<std::string, std::string>& volumes,
                         const Selection& selection = {});

// Where plan settings take some of the inputs only, what that is: "the first 20 items (--limit)";
// "" where they take all.
std::string TrialOf(std::string_view plan_settings);

// Canonical JSON of the entry script and its arguments; `job` is JSON text.
std::string ScriptSettings(std::string_view job);

// Canonical JSON of what may fail, by which a run that is over was judged; `job` is JSON text.
std::string ThresholdSettings(std::string_view job);

// Canonical JSON of what people wrote for the columns (dtypes, badRows), by input, which a retry
// may take anew; `job` is JSON text.
std::string WrittenTypes(std::string_view job);

// What differs between two such texts, as "spec.miniBatchSize: 10 -> 20"; empty when they mean the
// same. kCorrupt when one of them is no JSON object.
Result<std::vector<std::string>> Differences(std::string_view before, std::string_view after);

}  // namespace parallelrun::api
