// Bounds what an append-only file takes on disk while others write to it: the oldest bytes become
// a hole, which reads as zeros and takes no room; offsets stay as they are. Any thread.
#pragma once

#include <cstdint>

namespace parallelrun::agent {

// When `fd` (open for writing) takes more than `limit` bytes, drops all but its last `limit` / 2.
// Where the file system knows no holes, the file begins again at size 0: then `fd` must be open
// with O_APPEND wherever it is written.
void TrimLog(int fd, uint64_t limit);

// Where the bytes from `offset` on have not been dropped: `offset`, or the end of the hole there.
// `fd` is open for reading.
uint64_t KeptFrom(int fd, uint64_t offset);

}  // namespace parallelrun::agent
