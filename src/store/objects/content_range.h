// The header Content-Range of an answer 206: "bytes 0-9/100". Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace parallelrun::store {

struct ContentRange {
  uint64_t first = 0;
  uint64_t last = 0;
  std::optional<uint64_t> total;  // of the whole object, where the server says it
};

// Nothing for anything else.
std::optional<ContentRange> ParseContentRange(std::string_view header);

}  // namespace parallelrun::store
