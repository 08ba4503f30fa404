// The flags of Work: bits of its second byte (docs/worker-protocol.md, "Work").
#pragma once

#include <cstdint>

namespace parallelrun::job {

inline constexpr uint8_t kOfStore = 1;      // it names objects
inline constexpr uint8_t kHasMetadata = 2;  // of its items, at its end

}  // namespace parallelrun::job
