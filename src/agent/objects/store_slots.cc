#include "agent/objects/store_slots.h"

#include <algorithm>
#include <utility>

namespace parallelrun::agent {

bool StoreSlots::AnyFree(const std::string& store) const {
  const auto found = stores_.find(store);
  return found == stores_.end() || found->second.under_way < found->second.connections.allowed();
}

bool StoreSlots::Take(const std::string& store) {
  if (!AnyFree(store)) return false;
  ++stores_[store].under_way;
  return true;
}

void StoreSlots::Saw(const std::string& store, const store::AnswerCounts& until_now, Instant now) {
  One& one = stores_[store];
  one.connections.Saw(until_now, one.under_way >= one.connections.allowed(), now);
}

void StoreSlots::GiveBack(const std::string& store) { --stores_.at(store).under_way; }

bool StoreSlots::Park(Cache::Step step) {
  One& one = stores_[step.object.store];
  if (step.kind == Cache::Step::Kind::kLook) {
    if (one.looks == kMostLooks) return false;
    ++one.looks;
  }
  one.parked.push_back(std::move(step));
  return true;
}

std::optional<Cache::Step> StoreSlots::TakeParked() {
  for (auto& [name, one] : stores_) {
    if (one.parked.empty() || !Take(name)) continue;
    Cache::Step step = std::move(one.parked.front());
    one.parked.pop_front();
    if (step.kind == Cache::Step::Kind::kLook) --one.looks;
    return step;
  }
  return std::nullopt;
}

size_t StoreSlots::allowed() const {
  size_t all = 0;
  for (const auto& [name, one] : stores_) all += one.connections.allowed();
  return std::clamp(all, Connections::kFirst, Connections::kMost);
}

}  // namespace parallelrun::agent
