#include "base/wrap.h"

namespace parallelrun {

std::string Wrapped(std::string_view text, size_t indent) {
  constexpr size_t kWidth = 96;
  const size_t width = kWidth - indent;
  std::string out;
  while (text.size() > width) {
    size_t end = text.rfind(' ', width);
    if (end == std::string_view::npos) end = text.find(' ');
    if (end == std::string_view::npos) break;
    out.append(text.substr(0, end)).append("\n").append(indent, ' ');
    text.remove_prefix(end + 1);
  }
  return out.append(text).append("\n");
}

}  // namespace parallelrun
