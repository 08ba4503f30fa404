#include "agent/objects/connections.h"

#include <algorithm>

namespace parallelrun::agent {
namespace {

// Requests that were under way when one was refused are refused with it: that is one refusal.
constexpr Duration kOneRefusal = seconds(1);
constexpr Duration kGrowsUntilRefused = milliseconds(100);
constexpr Duration kGrowsAfter = seconds(1);

}  // namespace

void Connections::Saw(const store::AnswerCounts& until_now, bool busy, Instant now) {
  const bool throttled = until_now.throttled > seen_.throttled;
  seen_ = until_now;
  if (throttled) {
    if (halved_ && now - *halved_ < kOneRefusal) return;
    allowed_ = std::max<size_t>(1, allowed_ / 2);
    since_ = until_now.all;
    halved_ = grown_ = now;
    return;
  }
  // One that is not used would tell nothing of what the stores allow.
  if (!busy || allowed_ == kMost || until_now.all - since_ < allowed_) return;
  if (now - grown_ < (halved_ ? kGrowsAfter : kGrowsUntilRefused)) return;
  ++allowed_;
  since_ = until_now.all;
  grown_ = now;
}

}  // namespace parallelrun::agent
