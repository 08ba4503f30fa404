// The stores that the inputs of a job lie in.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/files.h"
#include "plan/planner.h"
#include "store/wished.h"

namespace parallelrun::plan {

// Every input is a folder or a file of a volume, or what a manifest names in one. `forbidden` are
// absolute folders that a listing must not meet (output, state, logs); meeting one is kInvalid with
// what to do. `files` outlives what is opened.
OpenStore FolderStores(const Files& files, std::vector<std::string> forbidden = {});

// An input is that, or names one of `stores` (how each is asked, by name), which must be there.
// Without a pattern its path there is the key of one object, or a prefix (object_or_prefix.h),
// unless it is said to be a prefix. What such a store needs that cannot be had (credentials, an
// endpoint) is the error of each call of it.
OpenStore InputStores(const Files& files, std::vector<std::string> forbidden,
                      std::map<std::string, store::Wished> stores);

}  // namespace parallelrun::plan
