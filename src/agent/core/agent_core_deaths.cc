#include <utility>

#include "agent/core/agent_core.h"

// The death of a process: whose fault it was, and what becomes of its mini-batches.

namespace parallelrun {
namespace {

constexpr uint32_t kMaxBounces = 3;

}  // namespace

void AgentCore::OnExited(uint32_t number, const std::string& words, Instant now,
                         const OutputRanges& output) {
  const auto it = processes_.find(number);
  if (it == processes_.end()) return;
  Process& process = it->second;
  if (process.state == ProcessState::kStarting && no_room_.empty()) {
    ++init_failures_;
    AddEvent(number, ProcessEvent::Kind::kInitFailed, "while it was starting, it " + words,
             StderrLog(number));
  } else if (process.state == ProcessState::kReady) {
    if (!process.answered && process.given.empty() && no_room_.empty()) ++idle_deaths_;
    AddEvent(number, ProcessEvent::Kind::kExited, words, StderrLog(number));
  }
  HandBack(number, process, words, output, now);
  processes_.erase(it);
}

// The mini-batch that the process worked on is to blame, if the process was not killed for another
// reason. If it worked on none, the one in front is, at the third such death in a row, so that a
// job always ends. Of several in flight, only one that was alone can be to blame.
bool AgentCore::ToBlame(const Process& process, const Given& given, bool working,
                        Batch& batch) const {
  if (process.state == ProcessState::kKilled || !no_room_.empty()) return false;
  const uint64_t last_begun = process.status.sequence;
  if (registration_.async) {
    const bool alone = process.given.size() == 1;
    if (alone && last_begun >= given.sequence) return true;
    return ++batch.bounces >= kMaxBounces && alone;
  }
  if (working) return last_begun == given.sequence;
  return given.sequence == process.given.front().sequence && ++batch.bounces >= kMaxBounces;
}

void AgentCore::HandBack(uint32_t number, Process& process, const std::string& words,
                         const OutputRanges& output, Instant now) {
  const StatusReading& status = process.status;
  const bool working = status.Working() && std::any_of(process.given.begin(), process.given.end(),
                                                       [&status](const Given& given) {
                                                         return given.sequence == status.sequence;
                                                       });
  for (auto given = process.given.rbegin(); given != process.given.rend(); ++given) {
    --given_;
    Batch& batch = leases_.at(given->key);
    if (batch.refused) {
      Forget(given->key);
      continue;
    }
    const Duration elapsed = now - (registration_.async ? given->since : process.busy_since);
    batch.elapsed_ns = static_cast<uint64_t>(std::max<int64_t>(elapsed.count(), 0)) * 1000;
    const bool shown = working && status.sequence == given->sequence;
    const bool in_flight = registration_.async || shown;
    const OutputRanges wrote = shown ? output : OutputRanges{};
    if (in_flight && process.kill_sequence == given->sequence && no_room_.empty()) {
      const char* kind =
          process.kill_cause == Cause::kRunTimeout ? "RunTimeout" : "OverheadTimeout";
      FinishFailed(given->key, batch,
                   {0, process.kill_run_ns, process.kill_cause, kind, process.kill_message,
                    StderrLog(number), 0, wrote},
                   now);
    } else if (ToBlame(process, *given, working, batch)) {
      const Duration ran = status.phase == Phase::kRun ? now - status.since : Duration(0);
      FinishFailed(
          given->key, batch,
          {0, static_cast<uint64_t>(std::max<int64_t>(ran.count(), 0)) * 1000, Cause::kProcessEnded,
           "ProcessEnded", ProcessName(number) + " " + words, StderrLog(number), 0, wrote},
          now);
    } else {
      Requeue(given->key, batch, now);
    }
  }
  process.given.clear();
}

void AgentCore::Requeue(Key key, Batch& batch, Instant now) {
  kept_bytes_ -= batch.rows.size();
  batch.rows = {};
  batch.started = false;
  batch.state = State::kQueued;
  if (end_ != AgentEnd::kNone || !no_room_.empty())
    return Finish(key, batch, Finished::Kind::kReturned, now);
  queue_.push_front(key);
}

}  // namespace parallelrun
