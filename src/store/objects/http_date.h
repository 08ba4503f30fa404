// Times as headers of HTTP have them: "Sun, 30 Aug 2015 12:36:00 GMT". Pure.
#pragma once

#include <optional>
#include <string>

#include "base/time.h"

namespace parallelrun::store {

std::string HttpDate(WallTime time);
std::optional<WallTime> ParseHttpDate(const std::string& text);

}  // namespace parallelrun::store
