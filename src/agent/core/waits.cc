#include "agent/core/waits.h"

namespace parallelrun::agent {

std::optional<Event> Waits::SideInputs(const std::string& what, uint64_t bytes) {
  if (what == side_inputs_) return std::nullopt;
  side_inputs_ = what;
  bytes_ = bytes;
  return OfSideInputs();
}

std::optional<Event> Waits::Store(const std::string& what) {
  if (what == store_) return std::nullopt;
  store_ = what;
  return OfStore();
}

std::vector<Event> Waits::All() const {
  std::vector<Event> events;
  if (!side_inputs_.empty()) events.push_back(OfSideInputs());
  if (!store_.empty()) events.push_back(OfStore());
  return events;
}

Event Waits::OfSideInputs() const {
  return {0, job::ProcessEvent::Kind::kFetching, side_inputs_, std::to_string(bytes_)};
}

Event Waits::OfStore() const { return {0, job::ProcessEvent::Kind::kStoreWait, store_}; }

}  // namespace parallelrun::agent
