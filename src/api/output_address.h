// Where a job publishes, and where its logs go, as texts. Pure.
#pragma once

#include <string>

#include "api/job.h"

namespace parallelrun::api {

// The same for two jobs of a cluster which publish to one place: the namespace, the volume's
// source, and the path; or the server and the URL. "" where the volume is each pod's own, or the
// job has none of that name.
std::string OutputAddress(const std::string& name_space, const JobSpec& spec);

// "volume/path", or the URL below which each run has a prefix of its own.
std::string LogPlace(const JobSpec& spec);

}  // namespace parallelrun::api
