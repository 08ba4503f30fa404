#include "job/pod_name.h"

#include <charconv>
#include <string>

namespace parallelrun::job {

uint64_t PodNumber(std::string_view host, std::string_view role) {
  const std::string mark = "-" + std::string(role) + "-";
  const size_t at = host.rfind(mark);
  if (at == std::string_view::npos) return 0;
  const std::string_view digits = host.substr(at + mark.size());
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return error == std::errc() && end == digits.data() + digits.size() ? number : 0;
}

}  // namespace parallelrun::job
