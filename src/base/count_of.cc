#include "base/count_of.h"

namespace parallelrun {

std::string CountOf(uint64_t count, std::string_view one) {
  std::string text = std::to_string(count).append(" ").append(one);
  if (count == 1) return text;
  return text + (one.ends_with("s") || one.ends_with("ch") ? "es" : "s");
}

std::string CountOf(uint64_t count, std::string_view one, std::string_view verb_of_one,
                    std::string_view verb_of_many) {
  return CountOf(count, one).append(" ").append(count == 1 ? verb_of_one : verb_of_many);
}

}  // namespace parallelrun
