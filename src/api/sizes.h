// Sizes as people write them: miniBatchSize ("10", "1MB") and Kubernetes quantities ("500m",
// "4Gi"). Pure. Errors are kInvalid and name the mend.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace parallelrun::api {

struct SizeText {
  uint64_t value = 0;     // a count, or bytes
  bool has_unit = false;  // KB, MB, GB: it can only mean bytes
};

// ^\d+([kKmMgG][bB])?$, in powers of 1024, at least 1 and below 2^63.
Result<SizeText> ParseSize(std::string_view text);

// A quantity times `scale`, rounded up: scale 1000 gives thousandths ("500m" -> 500), scale 1
// whole units ("4Gi" -> 4294967296). Not negative, below 2^63.
Result<int64_t> ParseQuantity(std::string_view text, int64_t scale);

}  // namespace parallelrun::api
