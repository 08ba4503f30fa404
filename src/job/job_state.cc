#include "job/job_state.h"

#include <algorithm>

#include <spdlog/fmt/fmt.h>

#include "base/mutation.h"

namespace parallelrun {
namespace {

Error Impossible(const char* record, BatchId id, const char* why) {
  return {Code::kCorrupt, fmt::format("{} record of mini-batch {}: {}", record, id, why)};
}

}  // namespace

Status JobState::Apply(const Record& record, const Place& record_place, const Place& rows) {
  if (PARALLELRUN_MUTATED(kFreshTriesOnRestart) && record.index() == 0) StartGeneration();
  if (const auto* result = std::get_if<ResultRecord>(&record)) return ApplyResult(*result, rows);
  if (const auto* failed = std::get_if<FailedRecord>(&record)) return ApplyFailed(*failed);
  if (const auto* chunk = std::get_if<PlanChunkRecord>(&record)) {
    return ApplyChunk(*chunk, record_place);
  }
  if (const auto* part = std::get_if<RowsRecord>(&record)) {
    if (part->id >= batches_.size() || settled(part->id)) {
      return Impossible("rows", part->id, "the mini-batch is not planned, or settled");
    }
    Parts& parts = parts_[part->id];
    if (parts.fence != part->fence) parts = {part->fence, 0, {}};
    parts.bytes += rows.length;
    parts.places.push_back(rows);
  } else if (const auto* lost = std::get_if<LostRecord>(&record)) {
    if (lost->id >= batches_.size()) return Impossible("lost", lost->id, "it is not planned");
    ++batches_[lost->id].losses;
  } else if (const auto* end = std::get_if<PlanEndRecord>(&record)) {
    if (end->batches != counts_.planned || end->items != counts_.items_planned) {
      return Error{
          Code::kCorrupt,
          fmt::format("plan end names {} mini-batches and {} items, the chunks hold {} and {}",
                      end->batches, end->items, counts_.planned, counts_.items_planned)};
    }
    plan_ended_ = true;
  } else if (const auto* settings = std::get_if<SettingsRecord>(&record)) {
    ApplySettings(*settings);
  } else if (const auto* verdict = std::get_if<VerdictRecord>(&record)) {
    verdict_ =
        Verdict{verdict->outcome, std::string(verdict->reason), std::string(verdict->message)};
  } else if (const auto* header = std::get_if<HeaderRecord>(&record)) {
    if (header_.empty()) header_ = header->line;
  } else if (const auto* published = std::get_if<PublishedRecord>(&record)) {
    published_ = Published{std::string(published->path), published->bytes, published->rows,
                           published->sha256};
  }
  return {};
}

Status JobState::ApplyChunk(const PlanChunkRecord& chunk, const Place& place) {
  if (chunk.first != counts_.planned || chunk.first_item != counts_.items_planned || plan_ended_) {
    return Impossible("plan chunk", chunk.first, "it does not follow the chunk before");
  }
  const uint32_t count = chunk.Batches();
  chunks_.push_back({chunk.first, count, place});
  batches_.reserve(std::max(batches_.capacity(), batches_.size() + count));
  for (uint32_t i = 0; i < count; ++i) batches_.emplace_back().items = chunk.ItemsOf(i);
  counts_.planned += count;
  counts_.items_planned += chunk.Items();
  return {};
}

Status JobState::ApplyResult(const ResultRecord& result, const Place& rows) {
  if (result.id >= batches_.size()) return Impossible("result", result.id, "it is not planned");
  MiniBatch& batch = batches_[result.id];
  if (batch.state != MiniBatch::State::kPending) {
    return Impossible("result", result.id, "it is settled already");
  }
  batch.state = MiniBatch::State::kSucceeded;
  failed_fences_.erase(result.id);
  batch.rows = rows;
  batch.fence = result.fence;
  batch.items_succeeded = result.items_succeeded;
  ++counts_.succeeded;
  counts_.items_succeeded += result.items_succeeded;
  counts_.items_failed += batch.items - std::min(batch.items, result.items_succeeded);
  counts_.rows += result.row_count;
  // Parts of another fence belong to an attempt that was given up.
  const auto parts = parts_.find(result.id);
  if (parts != parts_.end() && parts->second.fence != result.fence) parts_.erase(parts);
  return {};
}

Status JobState::ApplyFailed(const FailedRecord& failed) {
  if (failed.id >= batches_.size()) return Impossible("failed", failed.id, "it is not planned");
  MiniBatch& batch = batches_[failed.id];
  if (batch.state != MiniBatch::State::kPending) {
    return Impossible("failed", failed.id, "it is settled already");
  }
  errors_.Add(failed.kind, failed.message, failed.id, failed.node, failed.process, failed.log);
  parts_.erase(failed.id);
  batch.fence = failed.fence;
  ++batch.failed_attempts;
  if (!failed.final) {
    failed_fences_[failed.id].push_back(failed.fence);
  } else {
    failed_fences_.erase(failed.id);
    batch.state = MiniBatch::State::kFailed;
    ++counts_.failed;
    counts_.items_failed += batch.items;
  }
  return {};
}

void JobState::ApplySettings(const SettingsRecord& settings) {
  const bool new_generation = !settings_ || settings.generation > settings_->generation;
  settings_ = Settings{settings.generation,
                       settings.wall_us,
                       settings.code_digest,
                       std::string(settings.resource_uid),
                       std::string(settings.plan_settings),
                       std::string(settings.job)};
  if (new_generation) StartGeneration();
}

void JobState::StartGeneration() {
  verdict_.reset();
  published_.reset();
  errors_.Clear();
  failed_fences_.clear();
  for (MiniBatch& batch : batches_) {
    if (batch.state == MiniBatch::State::kSucceeded) continue;
    if (batch.state == MiniBatch::State::kFailed) {
      batch.state = MiniBatch::State::kPending;
      --counts_.failed;
      counts_.items_failed -= batch.items;
    }
    batch.fence = {};  // a result of that attempt that comes late is as good as any
    batch.failed_attempts = 0;
    batch.losses = 0;
  }
}

const JobState::Chunk& JobState::ChunkOf(BatchId id) const {
  const auto after = std::upper_bound(chunks_.begin(), chunks_.end(), id,
                                      [](BatchId i, const Chunk& c) { return i < c.first; });
  return *(after - 1);
}

bool JobState::Recorded(BatchId id, const Fence& fence) const {
  if (id >= batches_.size()) return false;
  if (batches_[id].fence == fence) return true;
  const auto failed = failed_fences_.find(id);
  return failed != failed_fences_.end() &&
         std::find(failed->second.begin(), failed->second.end(), fence) != failed->second.end();
}

uint64_t JobState::PartBytes(BatchId id, const Fence& fence) const {
  const auto found = parts_.find(id);
  return found != parts_.end() && found->second.fence == fence ? found->second.bytes : 0;
}

std::vector<Place> JobState::RowsOf(BatchId id) const {
  std::vector<Place> places;
  const auto parts = parts_.find(id);
  if (parts != parts_.end()) places = parts->second.places;
  if (batches_[id].rows.length > 0) places.push_back(batches_[id].rows);
  return places;
}

}  // namespace parallelrun
