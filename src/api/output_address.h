// Where a job publishes, as a text that is the same for two jobs of a cluster which publish to one
// place: the namespace, the volume's source, and the path; or the server and the URL. Pure.
#pragma once

#include <string>

#include "api/job.h"

namespace parallelrun::api {

// "" where the volume is each pod's own, or the job has none of that name.
std::string OutputAddress(const std::string& name_space, const JobSpec& spec);

}  // namespace parallelrun::api
