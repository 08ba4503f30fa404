#include <algorithm>
#include <deque>

#include "agent/core/agent_core.h"

// What waits while processes are at long mini-batches: it is taken back from the process that it
// was sent to, and handed back to the coordinator when no process here could take it soon.

namespace parallelrun {
namespace {

constexpr Duration kStalled = seconds(2);

}  // namespace

// Short mini-batches are sent ahead. When one of them turns out long, those behind it are taken
// back: first the process is told, then, when it must know, they are as if they had never been sent
// (docs/worker-protocol.md, "Taking back").
void AgentCore::CheckLate(uint32_t number, Process& process, Instant now) {
  const StatusReading& status = process.status;
  std::deque<Given>& given = process.given;
  for (size_t i = given.size(); i-- > 0;) {
    const bool begun = given[i].sequence <= status.sequence;
    if (begun || given[i].sequence > status.taken_back) continue;
    TakeBack(process, i, now);
  }
  const auto on_it = std::find_if(given.begin(), given.end(), [&status](const Given& one) {
    return one.sequence == status.sequence;
  });
  process.late = status.Working() && on_it != given.end() && now - status.since > pace_.Long();
  if (!process.late || given.back().sequence <= std::max(status.sequence, process.taken_back)) {
    return;
  }
  process.taken_back = given.back().sequence;
  actions_.push_back({WorkerAction::Kind::kTakeBack, number, process.taken_back, {}});
}

void AgentCore::TakeBack(Process& process, size_t index, Instant now) {
  const auto given = process.given.begin() + static_cast<std::ptrdiff_t>(index);
  const Key key = given->key;
  process.given.erase(given);
  --given_;
  Batch& batch = leases_.at(key);
  if (batch.refused) return Forget(key);
  Requeue(key, batch, now);
}

bool AgentCore::OnPassedOver(uint32_t number, uint64_t sequence, Instant now) {
  const auto it = processes_.find(number);
  if (it == processes_.end() || sequence > it->second.taken_back) return false;
  std::deque<Given>& given = it->second.given;
  if (given.empty() || given.front().sequence > sequence) return true;  // it is taken back already
  if (given.front().sequence != sequence) return false;
  TakeBack(it->second, 0, now);
  return true;
}

uint32_t AgentCore::LateProcesses() const {
  return static_cast<uint32_t>(
      std::count_if(processes_.begin(), processes_.end(), [](const auto& process) {
        return process.second.state == ProcessState::kReady && process.second.late;
      }));
}

// Every process has been at one mini-batch for long: what was a good number to hold is not any
// more.
bool AgentCore::Stalled(Instant now) const {
  bool busy = false;
  for (const auto& [number, process] : processes_) {
    if (process.state != ProcessState::kReady) continue;
    if (process.given.empty() || now - process.busy_since < kStalled) return false;
    busy = true;
  }
  // While it is unclear what this node holds, nothing is handed back.
  return busy && !registration_.async && !must_register_ && offers_ == 0;
}

// Hands back all that waits but one for each process that may soon take it, so that an idle node
// can.
void AgentCore::ReturnWaiting(Instant now) {
  const size_t most = processes_.size() - LateProcesses();
  std::deque<Key> kept;
  for (const Key key : queue_) {
    Batch* batch = Find(key);
    if (batch == nullptr || batch->state != State::kQueued) continue;
    if (kept.size() < most) {
      kept.push_back(key);
    } else {
      Finish(key, *batch, Finished::Kind::kReturned, now);
    }
  }
  queue_.swap(kept);
}

}  // namespace parallelrun
