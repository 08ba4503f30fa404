#include "agent/core/ending.h"

#include <algorithm>
#include <utility>

namespace parallelrun::agent {
namespace {

constexpr Duration kHung = seconds(1);
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

bool Ending::Close(Instant now) {
  if (begins_nothing()) return false;
  closes_ = now;
  return true;
}

Ending::Stay Ending::ProcessesStay(Duration timeout, Duration after_job, Instant now) const {
  Stay stay;
  if (begun()) {
    stay.over = now >= deadline_;
    // A drain has a time by which all must be over; when the job is over there is none.
    stay.stop_by = why_ == AgentEnd::kFinished ? now + std::min(timeout, after_job)
                                               : std::min(now + timeout, deadline_);
    // When the job is over and nothing was finished for long, people look for what hung.
    if (Mute()) stay.hung = now - kHung;
  }
  if (closes_) {
    stay.over = stay.over || now >= *closes_ + timeout;
    stay.stop_by = std::min(stay.stop_by, *closes_ + timeout);
  }
  return stay;
}

void Ending::NoProcessLeft(bool all_said, bool registered, Instant now) {
  // A drain has a time by which it must be over, whether or not a coordinator answers: the pod is
  // killed then. One that gave up waits for its coordinator, which learns only by it why.
  const bool too_late = why_ == AgentEnd::kDrained && now >= deadline_ + kLastReports;
  done_ = all_said || Mute() || !registered || too_late;
}

}  // namespace parallelrun::agent
