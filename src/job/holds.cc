#include "job/holds.h"

#include <algorithm>

namespace parallelrun::job {

void Holds::AddRetry(BatchId id, uint64_t position) {
  held_[id].retry = position;
  retries_.emplace_back(position, id);
}

bool Holds::AddElsewhere(BatchId id, WorkInstant until) {
  if (elsewhere_.size() >= kMostElsewhere) return false;
  std::optional<WorkInstant>& before = held_[id].elsewhere;
  if (before && *before >= until) return true;
  if (before) elsewhere_.erase({*before, id});
  before = until;
  elsewhere_.insert({until, id});
  return true;
}

void Holds::AddWithheld(BatchId id) {
  held_[id].withheld = true;
  withheld_.insert(id);
}

std::vector<BatchId> Holds::Durable(uint64_t position) {
  std::vector<BatchId> free;
  for (; !retries_.empty() && retries_.front().first <= position; retries_.pop_front()) {
    const auto [at, id] = retries_.front();
    const auto found = held_.find(id);
    // It may be settled since, or have failed once more.
    if (found == held_.end() || found->second.retry != at) continue;
    found->second.retry = 0;
    if (EraseIfNone(id)) free.push_back(id);
  }
  return free;
}

std::vector<BatchId> Holds::TimePassed(WorkInstant now) {
  std::vector<BatchId> free;
  while (!elsewhere_.empty() && elsewhere_.begin()->first <= now) {
    const BatchId id = elsewhere_.begin()->second;
    elsewhere_.erase(elsewhere_.begin());
    held_.at(id).elsewhere.reset();
    if (EraseIfNone(id)) free.push_back(id);
  }
  return free;
}

std::vector<BatchId> Holds::EndWithheld() {
  std::vector<BatchId> were(withheld_.begin(), withheld_.end());
  for (const BatchId id : were) DropWithheld(id);
  return were;
}

void Holds::DropWithheld(BatchId id) {
  if (withheld_.erase(id) == 0) return;
  held_.at(id).withheld = false;
  EraseIfNone(id);
}

void Holds::Drop(BatchId id) {
  const auto found = held_.find(id);
  if (found == held_.end()) return;
  if (found->second.elsewhere) elsewhere_.erase({*found->second.elsewhere, id});
  withheld_.erase(id);
  held_.erase(found);
}

Holds::Reasons Holds::Of(BatchId id) const {
  const auto found = held_.find(id);
  if (found == held_.end()) return {};
  const Hold& hold = found->second;
  return {hold.retry != 0, hold.withheld, hold.elsewhere};
}

std::vector<BatchId> Holds::Ids() const {
  std::vector<BatchId> ids;
  for (const auto& [id, hold] : held_) ids.push_back(id);
  return ids;
}

bool Holds::EraseIfNone(BatchId id) {
  const auto found = held_.find(id);
  if (found->second.any()) return false;
  held_.erase(found);
  return true;
}

}  // namespace parallelrun::job
