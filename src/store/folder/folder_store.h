// A folder of a volume as a store: names are paths below it, a version is a file's size and
// modification time (folder_version.h). The root is opened by the first call that needs it and
// stays open, so that the servers of network volumes are asked about names below it, not about
// whole paths.
//
// Symbolic links to files are files. A link to a folder is followed, but nothing is listed twice:
// what the same listing shows under its real name is shown under that one only, of several links to
// one folder outside of the root the first one counts, and a folder that is its own ancestor is not
// entered. A link that leads nowhere is an error, for it would be data missing in silence. What is
// not a regular file is left out.
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "base/files.h"
#include "store/store.h"

namespace parallelrun::store {

struct FolderRoot {
  std::string path;  // absolute: a folder, or a single file
  // Absolute folders that a listing must not meet; meeting one is kInvalid with the mend.
  std::vector<std::string> forbidden = {};
  std::stop_token stop = {};
};

// `files` outlives the store. Does no I/O: what is wrong with the root is told by the first call.
// Listing: kNotFound for a missing root, kInvalid for a forbidden folder and a link to nowhere.
// Memory of a listing: the names of one folder for each level, about 24 bytes a file beyond the
// name; no folder but the root is open between its calls.
std::unique_ptr<Store> MakeFolderStore(const Files& files, FolderRoot root);

}  // namespace parallelrun::store
