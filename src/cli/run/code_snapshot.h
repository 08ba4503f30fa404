// The code of a job as it is when the command starts: one copy that every node is made from, and a
// digest that tells a later resume whether it has changed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"

namespace parallelrun {

// Whether this file or folder is no part of the code: .git, __pycache__, and what is in `leave_out`
// (absolute: inputs and outputs that lie inside the code folder).
bool LeftOutOfCode(const std::filesystem::path& path, const std::vector<std::string>& leave_out);

// Copies `code` to `target` (made), without what LeftOutOfCode names. Links are copied as links,
// and one that leads out of the code leads to the same place.
// The result is XXH3-64 over names, kinds, contents and what links say, in byte order. kInvalid
// when the code is above 256 MiB or 20,000 files: it is most likely not what was meant.
Result<uint64_t> SnapshotCode(const std::string& code, const std::string& target,
                              const std::vector<std::string>& leave_out);

// Whether there is room for so many more copies of `snapshot` beside it, and what their nodes write
// there to begin with. kNoSpace with what to do.
Status CheckRoom(const std::string& snapshot, size_t copies);

}  // namespace parallelrun
