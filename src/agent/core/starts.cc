#include "agent/core/starts.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

#include "agent/core/agent_types.h"

namespace parallelrun::agent {

// A coordinator that died before its successor could know of it had granted the same names. Those
// that were used under it are not used again: their logs are there.
void Starts::Grant(uint32_t first) {
  end_ = first + kProcessRange;
  const bool granted_again = first <= next_ && next_ <= end_;
  if (!granted_again) next_ = first;
}

std::optional<uint32_t> Starts::Next() {
  if (next_ == end_) return std::nullopt;
  return next_++;
}

void Starts::Failed(std::string why) {
  ++failed_;
  last_ = std::move(why);
}

void Starts::EndedIdle(std::string why) {
  ++idle_;
  last_ = std::move(why);
}

bool Starts::Enough(uint32_t processes) const {
  const uint32_t limit = 3 * processes;
  return failed_ >= limit || idle_ >= limit;
}

std::string Starts::WhyEnough() const {
  return fmt::format(
      "no worker process could be kept running: {} in a row failed while starting, or ended "
      "before their first mini-batch{}{}",
      std::max(failed_, idle_), last_.empty() ? "" : "; the last one: ", last_);
}

}  // namespace parallelrun::agent
