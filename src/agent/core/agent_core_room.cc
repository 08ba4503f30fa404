#include <algorithm>
#include <utility>

#include "agent/core/agent_core.h"

// Want of space is nobody's failure: the node hands back what it has not begun, and waits.

namespace parallelrun {
namespace {

constexpr Duration kFirstShortWait = seconds(1);
constexpr Duration kLastShortWait = seconds(30);

}  // namespace

void AgentCore::OnRoom(const std::string& why) {
  if (why == no_room_) return;
  no_room_ = why;
  AddEvent(0, ProcessEvent::Kind::kNoRoom, no_room_, "");
}

// There may be room by what the edge sees: what a script needs at once, or on another volume, only
// trying tells. Oftener in a row, later; the coordinator's progress time-out bounds all of it.
void AgentCore::RanOut(std::string message, Instant now) {
  if (ran_out_.empty()) AddEvent(0, ProcessEvent::Kind::kRanOut, message, "");
  ran_out_ = std::move(message);
  if (!HasRoom(now)) return;
  short_wait_ = std::clamp(short_wait_ * 2, kFirstShortWait, kLastShortWait);
  short_until_ = now + short_wait_;
}

void AgentCore::ReturnQueued(Instant now) {
  std::deque<Key> queue;
  queue.swap(queue_);
  for (const Key key : queue) {
    Batch* batch = Find(key);
    if (batch != nullptr && batch->state == State::kQueued) {
      Finish(key, *batch, Finished::Kind::kReturned, now);
    }
  }
}

// To a coordinator that has not heard it.
void AgentCore::TellRoom() {
  if (!no_room_.empty()) AddEvent(0, ProcessEvent::Kind::kNoRoom, no_room_, "");
  if (!ran_out_.empty()) AddEvent(0, ProcessEvent::Kind::kRanOut, ran_out_, "");
}

}  // namespace parallelrun
