// Text for a terminal, in lines. Pure.
#pragma once

#include <string>
#include <string_view>

namespace parallelrun {

// In lines of at most 96 bytes, broken at spaces, each with a line feed; a longer word stays whole.
// All but the first begin with `indent` spaces, which count.
std::string Wrapped(std::string_view text, size_t indent = 0);

}  // namespace parallelrun
