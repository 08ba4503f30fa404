// The code of a job as it is when the command starts: one copy that every node is made from, and a
// digest that tells a later resume whether it has changed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/run/code_listing.h"
#include "coordinator/start/code_files.h"

namespace parallelrun::cli {

struct CodeSnapshot {
  uint64_t digest = 0;  // XXH3-64 over names, kinds, contents and what links say; without logs
  coordinator::CodeFiles files;    // of which it is; empty: too many to be kept
  std::vector<std::string> notes;  // lines for the user
};

// Copies the code to `target` (made). Links are copied as links, and one that leads out of the code
// leads to the same place. kInvalid when the code is above 256 MiB or 20,000 files: it is most
// likely not what was meant, and the message names what takes most.
Result<CodeSnapshot> SnapshotCode(const CodeFolder& code, const std::string& target);

// Whether there is room for so many more copies of `snapshot` beside it, and what their nodes write
// there to begin with. kNoSpace with what to do.
Status CheckRoom(const std::string& snapshot, size_t copies);

}  // namespace parallelrun::cli
