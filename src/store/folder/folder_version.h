// The version of a file: its size and modification time, as 16 bytes. They stand in ledgers and in
// Work (docs/ledger.md, docs/worker-protocol.md), where workers in Python compare them too, so that
// they never change. Pure, thread-safe.
#pragma once

#include <cstdint>

#include "base/files.h"
#include "store/store.h"

namespace parallelrun::store {

struct FileStamp {
  uint64_t size = 0;     // bytes
  int64_t mtime_ns = 0;  // since 1970
};

// u64 size and i64 modification time, little-endian.
Version VersionOf(const FileStamp& stamp);
// Zeros for a version that no folder has made.
FileStamp StampIn(const Version& version);

Found FoundAs(const FileFacts& facts);

}  // namespace parallelrun::store
