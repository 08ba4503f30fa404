#include "coordinator/plan/plan_store.h"

#include <algorithm>

#include <spdlog/fmt/fmt.h>

namespace parallelrun {

Result<const WorkMaker*> PlanStore::MakerOf(const JobState::Chunk& chunk) {
  const auto found = std::find_if(makers_.begin(), makers_.end(),
                                  [&](const auto& m) { return m.first == chunk.first; });
  if (found != makers_.end()) {
    makers_.splice(makers_.begin(), makers_, found);
    return &makers_.front().second;
  }
  Result<std::string> bytes = ledger_.Read(chunk.place);
  if (!bytes.ok()) return bytes.error();
  Result<WorkMaker> maker = WorkMaker::FromRecord(std::move(*bytes));
  if (!maker.ok()) return maker.error();
  makers_.emplace_front(chunk.first, std::move(*maker));
  if (makers_.size() > kKept) makers_.pop_back();
  return &makers_.front().second;
}

Result<PlannedWork> PlanStore::Work(const JobState& state, BatchId id) {
  const JobState::Chunk& chunk = state.ChunkOf(id);
  const Result<const WorkMaker*> maker = MakerOf(chunk);
  if (!maker.ok()) return maker.error();
  PlannedWork planned;
  planned.work = (*maker)->Make(static_cast<uint32_t>(id - chunk.first));
  planned.digest = WorkDigest(planned.work);
  // The script sees at most 65,535 earlier attempts; the ledger counts them all.
  SetWorkAttempts(planned.work,
                  static_cast<uint16_t>(std::min(state.batches()[id].failed_attempts, 0xffffU)));
  return planned;
}

Result<uint64_t> PlanStore::Digest(const JobState& state, BatchId id) {
  if (id >= state.counts().planned) {
    return Error{Code::kNotFound, fmt::format("mini-batch {} is not planned", id)};
  }
  const JobState::Chunk& chunk = state.ChunkOf(id);
  const Result<const WorkMaker*> maker = MakerOf(chunk);
  if (!maker.ok()) return maker.error();
  return WorkDigest((*maker)->Make(static_cast<uint32_t>(id - chunk.first)));
}

}  // namespace parallelrun
