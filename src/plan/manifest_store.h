// The store of an input that has a manifest: it lists what the manifest names, in its order, and
// looks and reads in the store that they lie in.
//
// A name is given once: one that comes again is kInvalid, with both lines, or another item where
// the manifest keeps such; a listing then goes on behind as many items as are planned. What is not
// there is listed all the same, with a version that no file has (kNoVersion, in a folder), so that
// it fails its own mini-batch and nothing else: of what a database names some is always gone. Links
// are followed, as in a folder that is listed, but never into `forbidden`. Blocking I/O.
//
// Memory: about 20 bytes an item, to know it again; none where it may come again.
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

// Where its parts lie.
struct ManifestParts {
  std::unique_ptr<store::Store> items;  // of the input: a folder, or a prefix
  std::unique_ptr<store::Store> place;  // that the manifest is a name of
  // Of a folder alone: what must not be met, and who knows where links lead. It outlives the store.
  std::vector<std::string> forbidden = {};
  const Files* files = nullptr;
};

// A manifest that is another one than input.manifest.planned, where that says something, is
// kInvalid, as is one that changes while it is read. In a store objects are looked at by many
// connections at once, some ahead of what was asked for; where `input.urls` says that nobody
// fetches them, none is looked at.
std::unique_ptr<store::Store> MakeManifestStore(const PlanInput& input, ManifestParts parts);

}  // namespace parallelrun::plan
