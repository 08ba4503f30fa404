// What the objects of stores take of a node's disk (spec.cache): the pod asks for it, so that the
// scheduler finds a host that has it, and a limit of the user's leaves it to the cache. The
// emptyDir that they lie in has no limit of its own. Pure.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include "api/job.h"

namespace parallelrun::operators {

// Bytes, with headroom for folders and blocks above the cache's budget; 0 where the script is given
// no objects as files.
int64_t ObjectRoom(const api::JobSpec& spec);

// Adds it to ephemeral storage in the resources of a container: to what is requested, and to what
// it is limited to, if it is.
void AddObjectRoom(const api::JobSpec& spec, nlohmann::json& resources);

}  // namespace parallelrun::operators
