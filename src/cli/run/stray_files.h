// What a script has left in its working folder, which is a copy of the code and goes with the run:
// nobody would learn that it was there. Blocking I/O; any thread.
#pragma once

#include <string>

namespace parallelrun::cli {

// `folder`: that of the run, with the `code` and a working folder `node-…` for each start of a
// node. A line that names the first files that no node was given, and where they belong; "": there
// are none.
std::string StrayFiles(const std::string& folder);

}  // namespace parallelrun::cli
