// The page's script and style, as they lie in assets/; the build makes their source of them.
#pragma once

#include <string_view>

namespace parallelrun::coordinator {

extern const std::string_view kPageScript;
extern const std::string_view kPageStyle;

}  // namespace parallelrun::coordinator
