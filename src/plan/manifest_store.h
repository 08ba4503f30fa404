// The store of an input that has a manifest: it lists what the manifest names, in its order, and
// looks and reads in the store that the files lie in.
//
// A name is given once: one that comes again is kInvalid, with both lines. What is not there is
// listed all the same, with kNoVersion, so that run() meets it and nothing else fails: of what a
// database names some is always gone. Links are followed, as in a folder that is listed, but
// never into `forbidden`. Blocking I/O.
//
// Memory: about 20 bytes an item, to know it again.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/files.h"
#include "plan/planner.h"
#include "store/store.h"

namespace parallelrun::plan {

// The name under which Stat() of such a store tells what the manifest itself is.
constexpr char kManifestItself[] = "";

// `items` is the folder of the input. A manifest that is another one than input.manifest.planned,
// where that says something, is kInvalid, as is one that changes while it is read. `files` outlives
// the store.
std::unique_ptr<store::Store> MakeManifestStore(const Files& files, const PlanInput& input,
                                                std::unique_ptr<store::Store> items,
                                                std::vector<std::string> forbidden);

}  // namespace parallelrun::plan
