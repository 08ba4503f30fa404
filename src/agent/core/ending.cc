#include "agent/core/ending.h"

#include <algorithm>
#include <utility>

namespace parallelrun::agent {
namespace {

constexpr Duration kLastReports = seconds(2);  // after the grace, for what is not settled yet

}  // namespace

Ending::Then Ending::Begin(AgentEnd end, Duration grace, std::string message, Instant now) {
  const bool at_once = end == AgentEnd::kFinished || end == AgentEnd::kLost;
  if (done_ || Mute() || (begun() && !at_once)) return Then::kNothing;
  // Who gave up says so by its exit code, whatever comes after.
  if (why_ != AgentEnd::kGaveUp) {
    why_ = end;
    message_ = std::move(message);
  }
  Hurry(grace, now);
  return at_once ? Then::kDrop : Then::kReturn;
}

void Ending::Hurry(Duration grace, Instant now) { deadline_ = std::min(deadline_, now + grace); }

// When the job is over nothing presses: shutdown() has its whole limit.
Instant Ending::StopBy(Duration shutdown_limit, Instant now) const {
  const Instant last = now + shutdown_limit;
  return why_ == AgentEnd::kFinished ? last : std::min(last, deadline_);
}

void Ending::NoProcessLeft(bool all_said, bool registered, Instant now) {
  // A drain has a time by which it must be over, whether or not a coordinator answers: the pod is
  // killed then. One that gave up waits for its coordinator, which learns only by it why.
  const bool too_late = why_ == AgentEnd::kDrained && now >= deadline_ + kLastReports;
  done_ = all_said || Mute() || !registered || too_late;
}

}  // namespace parallelrun::agent
