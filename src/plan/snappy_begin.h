// The first bytes of what a block of Snappy holds, of a block that may be cut off: pages of Parquet
// files are such blocks, and what the planner asks of them stands at their front. Bytes are not
// trusted. Pure, thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace parallelrun::plan {

// At most `most` bytes; fewer where `block` has no more, and those in front of what is no Snappy.
std::string SnappyBegin(std::string_view block, size_t most);

}  // namespace parallelrun::plan
