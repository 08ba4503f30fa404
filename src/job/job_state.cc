#include "job/job_state.h"

#include <algorithm>

#include <spdlog/fmt/fmt.h>

namespace parallelrun::job {
namespace {

Error Impossible(const char* record, BatchId id, const char* why) {
  return {Code::kCorrupt,
          fmt::format("{} record of mini-batch {}: {}", record, MiniBatchText(id), why)};
}

MiniBatch Untried(uint32_t items) {
  MiniBatch batch;
  batch.items = items;
  return batch;
}

}  // namespace

Status JobState::Apply(const Record& record, const Place& record_place, const Place& rows) {
  if (const auto* result = std::get_if<ResultRecord>(&record)) return ApplyResult(*result, rows);
  if (const auto* failed = std::get_if<FailedRecord>(&record)) return ApplyFailed(*failed);
  if (const auto* chunk = std::get_if<PlanChunkRecord>(&record)) {
    return ApplyChunk(*chunk, record_place);
  }
  if (const auto* part = std::get_if<RowsRecord>(&record)) {
    if (!known(part->id) || settled(part->id)) {
      return Impossible("rows", part->id, "the mini-batch is not planned, or settled");
    }
    parts_.Add(*part, rows, stages_side_files_);
  } else if (const auto* lost = std::get_if<LostRecord>(&record)) {
    std::optional<MiniBatch> batch = Find(lost->id);
    if (!batch) return Impossible("lost", lost->id, "it is not planned");
    ++batch->losses;
    Put(lost->id, *batch);
    started_.erase(lost->id);
  } else if (const auto* started = std::get_if<StartedRecord>(&record)) {
    if (!known(started->id)) return Impossible("started", started->id, "it is not planned");
    if (started->begun) {
      started_[started->id] = started->fence;
    } else {
      started_.erase(started->id);
    }
  } else if (const auto* company = std::get_if<CompanyRecord>(&record)) {
    return ApplyCompany(*company);
  } else if (const auto* skipped = std::get_if<SkippedRecord>(&record)) {
    return ApplySkipped(*skipped);
  } else if (const auto* shutdown = std::get_if<ShutdownRecord>(&record)) {
    shutdowns_.Apply(*shutdown);
  } else if (const auto* again = std::get_if<AgainRecord>(&record)) {
    return ApplyAgain(*again);
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
  } else if (const auto* types = std::get_if<TypesRecord>(&record)) {
    types_.try_emplace(types->input, types->types);
  } else if (const auto* published = std::get_if<PublishedRecord>(&record)) {
    published_ = Published{std::string(published->path), published->bytes, published->rows,
                           published->sha256};
    last_published_ = published_;
  }
  return {};
}

void JobState::OutputIsAt(const std::string& path) {
  if (published_) published_->path = path;
}

Status JobState::ApplyChunk(const PlanChunkRecord& chunk, const Place& place) {
  if (chunk.first != counts_.planned || chunk.first_item != counts_.items_planned || plan_ended_) {
    return Impossible("plan chunk", chunk.first, "it does not follow the chunk before");
  }
  const uint32_t count = chunk.Batches();
  chunks_.push_back({chunk.first, count, place});
  for (uint32_t i = 0; i < count; ++i) batches_.Add(chunk.ItemsOf(i));
  counts_.planned += count;
  counts_.items_planned += chunk.Items();
  return {};
}

std::optional<MiniBatch> JobState::Find(BatchId id) const {
  return known(id) ? std::optional(batch(id)) : std::nullopt;
}

void JobState::Put(BatchId id, const MiniBatch& batch) {
  if (IsPiece(id)) {
    pieces_.at(id).batch = batch;
  } else {
    batches_.Put(id, batch);
  }
}

Status JobState::ApplyResult(const ResultRecord& result, const Place& rows) {
  std::optional<MiniBatch> batch = Find(result.id);
  if (!batch) return Impossible("result", result.id, "it is not planned");
  if (batch->state != MiniBatch::State::kPending) {
    return Impossible("result", result.id, "it is settled already");
  }
  if (stages_side_files_) side_names_.Add(result.id, parts_.TakeSideFiles(result));
  failed_fences_.erase(result.id);
  started_.erase(result.id);
  companies_.Forget(result.id);
  const uint32_t rest = batch->items - std::min(batch->items, result.items_succeeded);
  batch->state = MiniBatch::State::kSucceeded;
  batch->rows = rows;
  batch->fence = result.fence;
  batch->items_skipped = std::min(parts_.Complete(result), rest);
  batch->items_missing = rest - batch->items_skipped;
  Put(result.id, *batch);
  counts_.items_succeeded += result.items_succeeded;
  counts_.items_skipped += batch->items_skipped;
  counts_.items_failed += batch->items_skipped;
  counts_.items_missing += batch->items_missing;
  counts_.rows += result.row_count;
  shutdowns_.AddResult({result.node, result.process});
  if (IsPiece(result.id)) {
    SettlePiece(result.id, true);
  } else {
    ++counts_.succeeded;
  }
  return {};
}

Status JobState::ApplySkipped(const SkippedRecord& skipped) {
  if (!known(skipped.id) || settled(skipped.id)) {
    return Impossible("skipped", skipped.id, "the mini-batch is not planned, or settled");
  }
  parts_.Add(skipped);
  return {};
}

Status JobState::ApplyFailed(const FailedRecord& failed) {
  std::optional<MiniBatch> batch = Find(failed.id);
  if (!batch) return Impossible("failed", failed.id, "it is not planned");
  if (batch->state != MiniBatch::State::kPending) {
    return Impossible("failed", failed.id, "it is settled already");
  }
  const bool split = failed.end == AttemptEnd::kSplit;
  if (split && (batch->items < 2 || !HasPieces(failed.id))) {
    return Impossible("failed", failed.id, "it cannot be split");
  }
  errors_.Add(failed.kind, failed.message, WholeOf(failed.id), failed.node, failed.process,
              failed.log);
  parts_.Forget(failed.id);
  batch->fence = failed.fence;
  ++batch->failed_attempts;
  if (failed.end == AttemptEnd::kFinal) batch->state = MiniBatch::State::kFailed;
  if (split) batch->state = MiniBatch::State::kSplit;
  Put(failed.id, *batch);
  if (failed.end == AttemptEnd::kAgain) {
    failed_fences_[failed.id].push_back(failed.fence);
    return {};
  }
  failed_fences_.erase(failed.id);
  started_.erase(failed.id);
  if (split) {
    companies_.Forget(failed.id);
    Split(failed.id);
    return {};
  }
  if (failed.kind == kLostTooOften) ++counts_.lost;
  counts_.items_failed += batch->items;
  if (IsPiece(failed.id)) {
    counts_.items_isolated += batch->items;
    SettlePiece(failed.id, false);
  } else {
    ++counts_.failed;
  }
  return {};
}

// What its results said is taken back, and the mini-batches are as if they had never been tried.
Status JobState::ApplyAgain(const AgainRecord& again) {
  for (const AgainRecord::Result& one : again.results) {
    const std::optional<MiniBatch> batch = Find(one.id);
    if (!batch || batch->state != MiniBatch::State::kSucceeded ||
        (!IsPiece(one.id) && tallies_.contains(one.id))) {
      return Impossible("again", one.id, "it has no result of its own");
    }
    counts_.items_succeeded -= one.items_succeeded;
    counts_.items_skipped -= batch->items_skipped;
    counts_.items_failed -= batch->items_skipped;
    counts_.items_missing -= batch->items_missing;
    counts_.rows -= one.row_count;
    parts_.Forget(one.id);
    if (IsPiece(one.id)) {
      --tallies_.at(WholeOf(one.id)).succeeded;
      ReopenPiece(one.id, pieces_.at(one.id).batch);
    } else {
      --counts_.succeeded;
      Put(one.id, Untried(batch->items));
    }
  }
  shutdowns_.Void({again.node, again.process}, again.results.size());
  std::vector<BatchId> ids;
  for (const AgainRecord::Result& one : again.results) ids.push_back(one.id);
  side_names_.Void(ids);
  return {};
}

Status JobState::ApplyCompany(const CompanyRecord& company) {
  for (const BatchId id : company.ids) {
    if (!known(id)) return Impossible("company", id, "it is not planned");
    if (settled(id)) continue;
    companies_.Add(id, company.most);
  }
  return {};
}

// Its two pieces stand for it from now on.
void JobState::Split(BatchId id) {
  const uint32_t items = batch(id).items;
  const uint32_t first = FirstItemOf(id);
  const uint32_t half = FirstPieceItems(items);
  pieces_[FirstPiece(id)] = {Untried(half), first};
  pieces_[SecondPiece(id)] = {Untried(items - half), first + half};
  // A piece that is split leaves two in place of one.
  tallies_[WholeOf(id)].open += IsPiece(id) ? 1 : 2;
  counts_.pieces_open += IsPiece(id) ? 1 : 2;
  if (!IsPiece(id)) ++counts_.split;
}

void JobState::SettlePiece(BatchId id, bool succeeded) {
  const MiniBatch& piece = pieces_.at(id).batch;
  MiniBatch whole = batches_[WholeOf(id)];
  Tally& tally = tallies_[WholeOf(id)];
  --counts_.pieces_open;
  --tally.open;
  if (succeeded) {
    ++tally.succeeded;
    // When it was complete, for those who order by that. Its rows are those of the pieces.
    whole.rows = {piece.rows.epoch, piece.rows.offset, 0};
  }
  if (tally.open == 0) {
    whole.state = tally.succeeded > 0 ? MiniBatch::State::kSucceeded : MiniBatch::State::kFailed;
  }
  batches_.Put(WholeOf(id), whole);
  if (tally.open > 0) return;
  --counts_.split;
  ++(tally.succeeded > 0 ? counts_.succeeded : counts_.failed);
}

void JobState::ApplySettings(const SettingsRecord& settings) {
  const bool new_generation = !settings_ || settings.generation > settings_->generation;
  settings_ = Settings{settings.generation,
                       settings.wall_us,
                       settings.code_digest,
                       std::string(settings.resource_uid),
                       std::string(settings.plan_settings),
                       std::string(settings.job),
                       settings.may_replace};
  stages_side_files_ = StagesSideFiles(settings_->plan_settings);
  if (new_generation) StartGeneration();
}

void JobState::StartGeneration() {
  verdict_.reset();
  published_.reset();
  errors_.Clear();
  failed_fences_.clear();
  started_.clear();
  counts_.lost = 0;
  ReopenPieces();
  for (BatchId id = 0; id < batches_.size(); ++id) Reopen(id);
}

// A mini-batch that is neither done nor in pieces starts over.
void JobState::Reopen(BatchId id) {
  const MiniBatch batch = batches_[id];
  if (batch.state == MiniBatch::State::kSucceeded || batch.state == MiniBatch::State::kSplit)
    return;
  if (batch.state == MiniBatch::State::kFailed) {
    --counts_.failed;
    counts_.items_failed -= batch.items;
  }
  // Without a fence: a result of that attempt that comes late is as good as any.
  batches_.Put(id, Untried(batch.items));
}

// Pieces that failed are pending again. Where no piece succeeded, the mini-batch is whole again: it
// may have failed for a reason that has nothing to do with its items.
void JobState::ReopenPieces() {
  for (auto& [id, piece] : pieces_) {
    MiniBatch& batch = piece.batch;
    const bool whole_again = tallies_.at(WholeOf(id)).succeeded == 0;
    if (batch.state == MiniBatch::State::kFailed) {
      counts_.items_failed -= batch.items;
      counts_.items_isolated -= batch.items;
      if (!whole_again) ReopenPiece(id, batch);
    } else if (batch.state == MiniBatch::State::kPending) {
      batch = Untried(batch.items);
      if (whole_again) --counts_.pieces_open;
    }
  }
  for (const auto& [id, tally] : tallies_) {
    if (tally.succeeded > 0) continue;
    MiniBatch whole = batches_[id];
    --(whole.state == MiniBatch::State::kSplit ? counts_.split : counts_.failed);
    whole.state = MiniBatch::State::kPending;
    batches_.Put(id, whole);
  }
  std::erase_if(pieces_, [this](const auto& entry) {
    const bool gone = tallies_.at(WholeOf(entry.first)).succeeded == 0;
    if (gone) parts_.Forget(entry.first);
    if (gone) companies_.Forget(entry.first);
    return gone;
  });
  std::erase_if(tallies_, [](const auto& entry) { return entry.second.succeeded == 0; });
}

void JobState::ReopenPiece(BatchId id, MiniBatch& piece) {
  piece = Untried(piece.items);
  ++tallies_.at(WholeOf(id)).open;
  ++counts_.pieces_open;
  MiniBatch whole = batches_[WholeOf(id)];
  if (whole.state == MiniBatch::State::kSplit) return;
  whole.state = MiniBatch::State::kSplit;
  batches_.Put(WholeOf(id), whole);
  --counts_.succeeded;
  ++counts_.split;
}

const JobState::Chunk& JobState::ChunkOf(BatchId id) const {
  const auto after = std::upper_bound(chunks_.begin(), chunks_.end(), WholeOf(id),
                                      [](BatchId i, const Chunk& c) { return i < c.first; });
  return *(after - 1);
}

bool JobState::Recorded(BatchId id, const Fence& fence) const {
  if (!known(id)) return false;
  if (batch(id).fence == fence) return true;
  const auto failed = failed_fences_.find(id);
  return failed != failed_fences_.end() &&
         std::find(failed->second.begin(), failed->second.end(), fence) != failed->second.end();
}

std::vector<Place> JobState::RowsOf(BatchId id) const {
  std::vector<RowsPart> parts;
  AppendRows(id, parts);
  std::vector<Place> places;
  for (const RowsPart& part : parts) {
    if (part.place.length > 0) places.push_back(part.place);
  }
  return places;
}

// In the order of the items; the depth is that of the tree of halves, below 32.
void JobState::AppendRows(BatchId id, std::vector<RowsPart>& parts) const {
  if (!tallies_.empty() && HasPieces(id) && pieces_.contains(FirstPiece(id))) {
    AppendRows(FirstPiece(id), parts);
    AppendRows(SecondPiece(id), parts);
    return;
  }
  if (StateOf(id) != MiniBatch::State::kSucceeded) return;
  const size_t begin = parts.size();
  for (const Place& place : parts_.Places(id)) parts.push_back({place});
  const Place last = IsPiece(id) ? pieces_.at(id).batch.rows : batches_.RowsOf(id);
  if (last.length > 0 || parts.size() > begin) {
    parts.push_back({last, false, true});
    parts[begin].first = true;
  }
}

}  // namespace parallelrun::job
