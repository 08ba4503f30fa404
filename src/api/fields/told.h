// What the parts of a job tell each other of its fields, by the table: who adds a field says there
// who hears of it. Pure; any thread.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "api/job.h"
#include "base/error.h"

namespace parallelrun::api::fields {

// What worker processes hear of, by the names that they know (docs/worker-protocol.md). A default
// is left out: they have the same.
nlohmann::json FieldsForWorkers(const JobSpec& spec);

// What every node hears of, by the names that agents know (docs/coordinator-api.md).
nlohmann::json FieldsForNodes(const JobSpec& spec);

// Paths of what is said in `spec` and does nothing without a cluster, as "coordinator.podTemplate".
std::vector<std::string> FieldsOnlyForClusters(const JobSpec& spec);

// The fields that the coordinator is told of anew while the job runs, each with its value
// (docs/coordinator-api.md).
nlohmann::json FieldsForRunningJob(const JobSpec& spec);

// Whether `value` is right for the field `name` of those. kNotFound: it is none of them; kInvalid
// says what is wrong.
Status CheckForRunningJob(const std::string& name, const nlohmann::json& value);

}  // namespace parallelrun::api::fields
