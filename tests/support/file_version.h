// Versions of files of a folder as chunks hold them (docs/ledger.md), for tests that make chunks.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace parallelrun {

// Stays for as long as the program runs, as literals do.
inline std::string_view FileVersion(uint64_t size, int64_t mtime_ns) {
  static std::set<std::string> made;
  std::string bytes;
  Encoder to(bytes);
  to.U64(size);
  to.I64(mtime_ns);
  return *made.insert(bytes).first;
}

}  // namespace parallelrun
