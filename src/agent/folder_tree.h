// Trees of folders on a node's disk, through Files. They go with the node, so nothing is synced.
// Blocking; any thread.
#pragma once

#include <memory>
#include <string>

#include "base/error.h"
#include "base/files.h"

namespace parallelrun::agent {

// The open folder `path`, made if missing, with those above it. `links` is for what is below it.
Result<std::unique_ptr<Folder>> MakeTree(const Files& files, const std::string& path, Links links);

// What `name` is, with all that is in it. Links go, not what they lead to. What is not there is
// removed already.
Status RemoveTree(Folder& in, const std::string& name);

// All that is in the folder `path`, which stays. What cannot be removed does not keep the rest; the
// first error is told.
Status RemoveAllBelow(const Files& files, const std::string& path);

}  // namespace parallelrun::agent
