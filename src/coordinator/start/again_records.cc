#include "coordinator/start/again_records.h"

#include <utility>

namespace parallelrun::coordinator {

bool StillCounts(const job::JobState& state, const job::ResultRecord& result) {
  if (!state.known(result.id)) return false;
  const job::MiniBatch now = state.batch(result.id);
  return now.state == job::MiniBatch::State::kSucceeded && now.fence == result.fence;
}

void AgainRecords::Add(const job::ResultRecord& result) {
  job::AgainRecord& again = open_[{result.node, result.process}];
  again.node = result.node;
  again.process = result.process;
  again.results.push_back({result.id, result.items_succeeded, result.row_count});
  if (again.results.size() < kMostResults) return;
  full_.push_back(std::move(again));
  open_.erase({result.node, result.process});
}

std::vector<job::AgainRecord> AgainRecords::Take() {
  std::vector<job::AgainRecord> records = std::exchange(full_, {});
  for (auto& [process, again] : std::exchange(open_, {})) records.push_back(std::move(again));
  return records;
}

}  // namespace parallelrun::coordinator
