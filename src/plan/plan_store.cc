#include "plan/plan_store.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <spdlog/fmt/fmt.h>

#include "plan/columns/parquet_types.h"
#include "plan/columns/types_json.h"
#include "plan/partition_format.h"

namespace parallelrun::plan {
namespace {

// `items` items of the `index`-th mini-batch of a chunk, from its `first`-th on.
std::vector<PlannedItem> ItemsOf(const job::WorkMaker& maker, uint32_t index, uint32_t first,
                                 uint32_t items) {
  const job::PlanChunkRecord& chunk = maker.chunk();
  uint64_t first_item = maker.FirstItem(index) + first;
  std::vector<PlannedItem> found;
  const auto add = [&](uint32_t i, std::string_view root, std::string_view name) {
    found.push_back({fmt::format("{}/{}", root, name), first_item + i, 1, false, 0, 0, 0});
  };
  if (const auto* files = std::get_if<job::FilesChunk>(&chunk.content)) {
    const size_t from = size_t{index} * files->files_per_batch + first;
    for (uint32_t i = 0; i < items; ++i) add(i, files->root, maker.FileName(from + i));
  } else if (const auto* groups = std::get_if<job::FileGroupsChunk>(&chunk.content)) {
    std::string_view names = groups->groups[index].names;
    for (uint32_t i = 0; i < first; ++i) names.remove_prefix(names.find('\0') + 1);
    for (uint32_t i = 0; i < items; ++i) {
      const size_t end = names.find('\0');
      add(i, groups->root, names.substr(0, end));
      if (end != std::string_view::npos) names.remove_prefix(end + 1);
    }
  } else if (const auto* tabular = std::get_if<job::TabularChunk>(&chunk.content)) {
    const job::Slice& slice = tabular->slices[index];
    found.push_back(
        {std::string(tabular->path), first_item, items, true, slice.offset, slice.length, first});
  } else if (const auto* tables = std::get_if<job::TableGroupsChunk>(&chunk.content)) {
    uint32_t skip = first;
    uint32_t left = items;
    for (const job::TableSlice& slice : tables->groups[index].slices) {
      const uint32_t here = std::min(left, slice.rows - std::min(skip, slice.rows));
      if (here > 0) {
        found.push_back(
            {std::string(slice.path), first_item, here, true, slice.offset, slice.length, skip});
      }
      skip -= std::min(skip, slice.rows);
      left -= here;
      first_item += here;
    }
  } else {
    found.push_back({"", first_item, items, false, 0, 0, 0});
  }
  return found;
}

bool HasColumns(PlanKind kind) {
  return kind == PlanKind::kDelimited || kind == PlanKind::kParquet;
}

class LedgerChunks final : public ChunkSource {
 public:
  explicit LedgerChunks(const ledger::Ledger& ledger) : ledger_(ledger) {}
  bool Ask(const job::Place&) override { return true; }
  Result<std::string> Take(const job::Place& place) override { return ledger_.Read(place); }

 private:
  const ledger::Ledger& ledger_;
};

}  // namespace

std::unique_ptr<ChunkSource> PlanStore::SourceOf(const ledger::Ledger& ledger) {
  return std::make_unique<LedgerChunks>(ledger);
}

bool PlanStore::AtHand(const job::JobState& state, job::BatchId id) {
  const job::JobState::Chunk& chunk = state.ChunkOf(id);
  const bool kept = std::any_of(makers_.begin(), makers_.end(),
                                [&](const auto& m) { return m.first == chunk.first; });
  return kept || source_.Ask(chunk.place);
}

Result<const job::WorkMaker*> PlanStore::MakerOf(const job::JobState& state,
                                                 const job::JobState::Chunk& chunk) {
  const auto found = std::find_if(makers_.begin(), makers_.end(),
                                  [&](const auto& m) { return m.first == chunk.first; });
  if (found != makers_.end()) {
    makers_.splice(makers_.begin(), makers_, found);
    return &makers_.front().second;
  }
  Result<std::string> bytes = source_.Take(chunk.place);
  if (!bytes.ok()) return bytes.error();
  Result<job::WorkMaker> maker = job::WorkMaker::FromRecord(std::move(*bytes));
  if (!maker.ok()) return maker.error();
  if (const Status added = AddReading(state, *maker); !added.ok()) return added.error();
  makers_.emplace_front(chunk.first, std::move(*maker));
  if (makers_.size() > kKept) makers_.pop_back();
  return &makers_.front().second;
}

// How the input is read beside what the chunks say, which stay as they are: the types are decided
// once, in front of the input's chunks, and what stands in a file's path is made of the path.
Status PlanStore::AddReading(const job::JobState& state, job::WorkMaker& maker) const {
  const uint32_t index = maker.chunk().input;
  if (index >= inputs_.size()) return {};
  const PlanInput& input = inputs_[index];
  if (input.urls) maker.GiveUrls();
  std::string members;
  const auto types = state.types().find(index);
  if (types != state.types().end() && input.kind == PlanKind::kParquet) {
    members = ParquetFormatMembers(types->second);
  } else if (types != state.types().end() && input.kind == PlanKind::kDelimited) {
    const Result<TypedTable> table = TypesFromJson(types->second);
    if (!table.ok()) return table.error();
    members = FormatMembers(*table, input);
  }
  if (HasColumns(input.kind) && !input.partition_format.empty()) {
    Result<PathContext> context = PathContext::Make(input.partition_format, {});
    if (!context.ok()) return context.error();
    members += (members.empty() ? "" : ",") + ("\"pathColumns\":" + context->Columns());
    maker.AddPathValues([&input, context = std::move(*context)](std::string_view path) {
      return context.Values(NameOf(path, input));
    });
  }
  maker.AddToFormat(std::move(members));
  return {};
}

Result<std::string> PlanStore::Make(const job::JobState& state, job::BatchId id) {
  const job::JobState::Chunk& chunk = state.ChunkOf(id);
  const Result<const job::WorkMaker*> maker = MakerOf(state, chunk);
  if (!maker.ok()) return maker.error();
  const auto index = static_cast<uint32_t>(job::WholeOf(id) - chunk.first);
  if (!job::IsPiece(id)) return (*maker)->Make(index);
  return (*maker)->MakePiece(index, id, state.FirstItemOf(id), state.batch(id).items);
}

Result<PlannedWork> PlanStore::Work(const job::JobState& state, job::BatchId id) {
  Result<std::string> work = Make(state, id);
  if (!work.ok()) return work.error();
  PlannedWork planned{std::move(*work), 0};
  planned.digest = job::WorkDigest(planned.work);
  // The script sees at most 65,535 earlier attempts; the ledger counts them all.
  job::SetWorkAttempts(planned.work,
                       static_cast<uint16_t>(std::min(state.batch(id).failed_attempts, 0xffffU)));
  return planned;
}

Result<uint64_t> PlanStore::Digest(const job::JobState& state, job::BatchId id) {
  if (!state.known(id)) {
    return Error{Code::kNotFound,
                 fmt::format("mini-batch {} is not planned", job::MiniBatchText(id))};
  }
  const Result<std::string> work = Make(state, id);
  if (!work.ok()) return work.error();
  return job::WorkDigest(*work);
}

Result<std::vector<PlannedItem>> PlanStore::Items(const job::JobState& state, job::BatchId id) {
  const job::JobState::Chunk& chunk = state.ChunkOf(id);
  const Result<const job::WorkMaker*> maker = MakerOf(state, chunk);
  if (!maker.ok()) return maker.error();
  return ItemsOf(**maker, static_cast<uint32_t>(job::WholeOf(id) - chunk.first),
                 state.FirstItemOf(id), state.batch(id).items);
}

}  // namespace parallelrun::plan
