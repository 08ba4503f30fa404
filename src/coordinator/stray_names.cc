#include "coordinator/stray_names.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <iterator>

#include "base/count_of.h"
#include "base/escape.h"

namespace parallelrun::coordinator {

void StrayNames::Add(std::string_view name) {
  first_.insert(Printable(name, kShownShort));
  if (first_.size() > kMostNamed) first_.erase(std::prev(first_.end()));
}

std::string StrayNames::Words(bool linked) const {
  if (count_ == 0) return "";
  const uint64_t more = count_ - std::min<uint64_t>(count_, first_.size());
  return fmt::format(
      "the script wrote {} into its working folder, a copy of the code that goes with the node: "
      "{}{}. What is to stay belongs into the output folder: {}the path that $(output) in an "
      "argument stands for",
      CountOf(count_, "file"), fmt::join(first_, ", "),
      more > 0 ? fmt::format(" and {} more", more) : "", linked ? "./outputs, or " : "");
}

}  // namespace parallelrun::coordinator
