// A file that may be of any length, line by line, with a bound on each line before its bytes.
// Blocking; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

#include "base/error.h"

namespace parallelrun {

class File;

// Tells `each` of every line without its end, until it says false; the last one may have no end,
// and empty ones are passed over. So are those of more than `longest` bytes, without being kept:
// gives how many.
Result<uint64_t> EachLine(const File& file, size_t longest,
                          const std::function<bool(std::string_view)>& each);

}  // namespace parallelrun
