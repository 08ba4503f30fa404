// The code of a job as it is when the command starts: one copy that every node is made from, and a
// digest that tells a later resume whether it has changed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"

namespace parallelrun {

// Copies `code` to `target` (made). Left out: .git, __pycache__, and every folder of `leave_out`
// (absolute: inputs and outputs that lie inside the code folder). Links are copied as links. The
// result is XXH3-64 over names, kinds and contents in byte order. kInvalid when the code is above
// 256 MiB or 20,000 files: it is most likely not what was meant.
Result<uint64_t> SnapshotCode(const std::string& code, const std::string& target,
                              const std::vector<std::string>& leave_out);

}  // namespace parallelrun
