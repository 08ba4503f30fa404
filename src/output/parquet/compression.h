// Pages by zstd, at the level that workers have. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace parallelrun::output {

Result<std::string> Compressed(std::string_view bytes);

// kCorrupt: `bytes` are none that were `size` before.
Result<std::string> Decompressed(std::string_view bytes, uint32_t size);

}  // namespace parallelrun::output
