// Times as S3 and its like write them. Pure.
#pragma once

#include <optional>
#include <string>

#include "base/time.h"

namespace parallelrun::store::s3 {

// "20150830T123600Z": of signatures.
std::string CompactTime(WallTime time);

// "2015-08-30T12:36:00Z", with or without a fraction, which is left out: when credentials end.
std::optional<WallTime> ParseIsoTime(const std::string& text);

}  // namespace parallelrun::store::s3
