#include "agent/core/shortage.h"

#include <algorithm>
#include <utility>

namespace parallelrun::agent {
namespace {

constexpr Duration kFirstShortWait = seconds(1);
constexpr Duration kLastShortWait = seconds(30);

}  // namespace

bool Shortage::Measured(const std::string& why) {
  if (why == no_room_) return false;
  no_room_ = why;
  return true;
}

// Nothing here bounds the number of tries; the coordinator's time-out without progress does.
bool Shortage::RanOut(std::string message, Instant now) {
  const bool news = ran_out_.empty();
  ran_out_ = std::move(message);
  // Several that fail together are one try.
  if (!Room(now)) return news;
  wait_ = std::clamp(wait_ * 2, kFirstShortWait, kLastShortWait);
  wait_until_ = now + wait_;
  return news;
}

bool Shortage::Worked() {
  wait_ = Duration(0);
  return !std::exchange(ran_out_, {}).empty();
}

std::vector<Event> Shortage::All() const {
  std::vector<Event> events;
  if (measured()) events.push_back({0, job::ProcessEvent::Kind::kNoRoom, no_room_});
  if (!ran_out_.empty()) events.push_back({0, job::ProcessEvent::Kind::kRanOut, ran_out_});
  return events;
}

bool Shortage::RoomAgain(Instant now) {
  const bool room = Room(now);
  return !std::exchange(had_room_, room) && room;
}

}  // namespace parallelrun::agent
