#include <utility>

#include "agent/core/agent_core.h"

// How an agent ends: by a drain, because the job is over, or because it cannot go on.

namespace parallelrun {
namespace {

constexpr Duration kLastReports = seconds(2);  // after the grace, for what is not settled yet

}  // namespace

void AgentCore::Drain(Duration grace, Instant now) {
  if (end_ == AgentEnd::kNone) return End(AgentEnd::kDrained, grace, "", now);
  end_deadline_ = std::min(end_deadline_, now + grace);
}

void AgentCore::End(AgentEnd end, Duration grace, std::string message, Instant now) {
  const bool at_once = end == AgentEnd::kFinished || end == AgentEnd::kLost;
  if (done_ || end_ == AgentEnd::kFinished || end_ == AgentEnd::kLost) return;
  if (end_ != AgentEnd::kNone && !at_once) return;
  if (end_ == AgentEnd::kGaveUp) {
    // It stays the reason; there is nobody left to report to.
    events_.clear();
    for (Flight& flight : flights_) flight.events = 0;  // what they carried is gone with the rest
  } else {
    end_ = end;
    end_message_ = std::move(message);
  }
  end_deadline_ = std::min(end_deadline_, now + grace);
  if (at_once) {
    DropAll(now);
    return;
  }
  ReturnQueued(now);
}

void AgentCore::EndProcesses(Instant now) {
  const bool late = now >= end_deadline_;
  for (auto& [number, process] : processes_) {
    if (process.state == ProcessState::kStarting) {
      Kill(number, process);
    } else if (process.state == ProcessState::kReady) {
      if (!process.given.empty()) {
        if (late) Kill(number, process);
        continue;
      }
      const Instant last = now + options_.shutdown_limit;
      process.stop_deadline = end_ == AgentEnd::kFinished ? last : std::min(last, end_deadline_);
      process.state = ProcessState::kStopping;
      actions_.push_back({WorkerAction::Kind::kStop, number, 0, {}});
    }
  }
}

void AgentCore::CheckDone(Instant now) {
  if (end_ == AgentEnd::kNone || !processes_.empty()) return;
  const bool all_said = leases_.empty() && events_.empty();
  const bool at_once = end_ == AgentEnd::kFinished || end_ == AgentEnd::kLost || !registered_;
  const bool too_late = end_ == AgentEnd::kDrained && now >= end_deadline_ + kLastReports;
  done_ = all_said || at_once || too_late;
}

}  // namespace parallelrun
