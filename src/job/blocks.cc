#include "job/blocks.h"

#include <algorithm>

namespace parallelrun::job {

void Blocks::AddRetry(BatchId id, uint64_t position) {
  blocked_[id].retry = position;
  retries_.emplace_back(position, id);
}

bool Blocks::AddElsewhere(BatchId id, WorkInstant until) {
  if (elsewhere_.size() >= kMostElsewhere) return false;
  std::optional<WorkInstant>& before = blocked_[id].elsewhere;
  if (before && *before >= until) return true;
  if (before) elsewhere_.erase({*before, id});
  before = until;
  elsewhere_.insert({until, id});
  return true;
}

void Blocks::AddWithheld(BatchId id) {
  blocked_[id].withheld = true;
  withheld_.insert(id);
}

std::vector<BatchId> Blocks::Durable(uint64_t position) {
  std::vector<BatchId> free;
  for (; !retries_.empty() && retries_.front().first <= position; retries_.pop_front()) {
    const auto [at, id] = retries_.front();
    const auto found = blocked_.find(id);
    // It may be settled since, or have failed once more.
    if (found == blocked_.end() || found->second.retry != at) continue;
    found->second.retry = 0;
    if (EraseIfNone(id)) free.push_back(id);
  }
  return free;
}

std::vector<BatchId> Blocks::TimePassed(WorkInstant now) {
  std::vector<BatchId> free;
  while (!elsewhere_.empty() && elsewhere_.begin()->first <= now) {
    const BatchId id = elsewhere_.begin()->second;
    elsewhere_.erase(elsewhere_.begin());
    blocked_.at(id).elsewhere.reset();
    if (EraseIfNone(id)) free.push_back(id);
  }
  return free;
}

std::vector<BatchId> Blocks::EndWithheld() {
  std::vector<BatchId> were(withheld_.begin(), withheld_.end());
  for (const BatchId id : were) DropWithheld(id);
  return were;
}

void Blocks::DropWithheld(BatchId id) {
  if (withheld_.erase(id) == 0) return;
  blocked_.at(id).withheld = false;
  EraseIfNone(id);
}

void Blocks::Drop(BatchId id) {
  const auto found = blocked_.find(id);
  if (found == blocked_.end()) return;
  if (found->second.elsewhere) elsewhere_.erase({*found->second.elsewhere, id});
  withheld_.erase(id);
  blocked_.erase(found);
}

Blocks::Reasons Blocks::Of(BatchId id) const {
  const auto found = blocked_.find(id);
  if (found == blocked_.end()) return {};
  const Block& block = found->second;
  return {block.retry != 0, block.withheld, block.elsewhere};
}

std::vector<BatchId> Blocks::Ids() const {
  std::vector<BatchId> ids;
  for (const auto& [id, block] : blocked_) ids.push_back(id);
  return ids;
}

bool Blocks::EraseIfNone(BatchId id) {
  const auto found = blocked_.find(id);
  if (found->second.any()) return false;
  blocked_.erase(found);
  return true;
}

}  // namespace parallelrun::job
