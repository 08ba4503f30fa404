// Who asks the stores of a job, and so needs their places: the coordinator asks all of them.
#pragma once

#include <string_view>

#include "api/job.h"

namespace parallelrun::api {

// Whether nodes fetch objects of the store of that name for the script.
bool NodesFetchFrom(const JobSpec& spec, std::string_view store);

// Whether nodes of a cluster are given the keys of that store, and not URLs of its objects alone. A
// script can use whatever its node has.
bool NodesHaveKeysOf(const JobSpec& spec, const ObjectStore& store);

}  // namespace parallelrun::api
