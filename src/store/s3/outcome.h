// What came of a request to S3, by its answer. Pure.
#pragma once

#include <string_view>

#include "store/objects/retry.h"

namespace parallelrun::store::s3 {

// Of an answer; `code` is that of its body, or empty. `knows_region`: it tells another region.
Outcome OutcomeOf(int status, std::string_view code, bool knows_region);

}  // namespace parallelrun::store::s3
