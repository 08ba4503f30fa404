// Who asks the stores of a job, and so needs their places: the coordinator asks all of them.
#pragma once

#include <string_view>

#include "api/job.h"

namespace parallelrun::api {

// Whether nodes fetch objects of the store of that name for the script.
bool NodesFetchFrom(const JobSpec& spec, std::string_view store);

}  // namespace parallelrun::api
