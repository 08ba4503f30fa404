#include "cli/debug/planned_work.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string_view>
#include <utility>
#include <variant>

#include "base/escape.h"
#include "cli/runs/inspect_state.h"
#include "job/job_state.h"
#include "job/record_codec.h"
#include "job/work.h"
#include "plan/plan_store.h"
#include "plan/source.h"

namespace parallelrun::cli {
namespace {

constexpr size_t kMostNamed = 10;

// Where an item was found.
struct FoundItem {
  job::BatchId mini_batch = 0;
  uint32_t index = 0;    // of the mini-batch in its chunk
  uint32_t item = 0;     // of files: its place in the mini-batch
  bool is_file = false;  // rows are not taken one by one
  bool whole = false;    // the whole path was given
};

// Calls `each(index, item, path, is_file)` for what the mini-batches of a chunk hold.
template <typename Each>
void EachItem(const job::PlanChunkRecord& chunk, Each each) {
  const auto names = [&](std::string_view root, std::string_view joined, uint32_t count,
                         uint32_t index, uint32_t per_batch) {
    const std::string folder(root);
    for (uint32_t i = 0; i < count; ++i) {
      const size_t end = std::min(joined.find('\0'), joined.size());
      each(index + i / per_batch, i % per_batch, plan::JoinPath(folder, joined.substr(0, end)),
           true);
      joined.remove_prefix(std::min(end + 1, joined.size()));
    }
  };
  if (const auto* files = std::get_if<job::FilesChunk>(&chunk.content)) {
    const auto count = static_cast<uint32_t>(files->versions.size());
    names(files->root, files->names, count, 0, files->files_per_batch);
  } else if (const auto* groups = std::get_if<job::FileGroupsChunk>(&chunk.content)) {
    for (uint32_t i = 0; i < groups->groups.size(); ++i) {
      const auto count = static_cast<uint32_t>(groups->groups[i].versions.size());
      names(groups->root, groups->groups[i].names, count, i, count);
    }
  } else if (const auto* table = std::get_if<job::TabularChunk>(&chunk.content)) {
    for (uint32_t i = 0; i < table->slices.size(); ++i) {
      each(i, 0U, std::string(table->path), false);
    }
  } else if (const auto* tables = std::get_if<job::TableGroupsChunk>(&chunk.content)) {
    for (uint32_t i = 0; i < tables->groups.size(); ++i) {
      for (const job::TableSlice& slice : tables->groups[i].slices) {
        each(i, 0U, std::string(slice.path), false);
      }
    }
  }
}

// The chunks that were kept while the ledger was read.
class KeptChunks final : public plan::ChunkSource {
 public:
  void Keep(job::BatchId first, const job::Place& place, std::string bytes) {
    chunks_[first] = {place, std::move(bytes)};
  }
  bool Ask(const job::Place&) override { return true; }
  Result<std::string> Take(const job::Place& place) override {
    for (const auto& [first, chunk] : chunks_) {
      if (chunk.first.epoch == place.epoch && chunk.first.offset == place.offset) {
        return chunk.second;
      }
    }
    return Error{Code::kNotFound, "the plan chunk was not kept"};
  }
  const std::string& bytes(job::BatchId first) const { return chunks_.at(first).second; }

 private:
  std::map<job::BatchId, std::pair<job::Place, std::string>> chunks_;
};

class Search {
 public:
  explicit Search(const WantedWork& wanted) : wanted_(wanted) {
    if (!wanted.item.empty()) {
      path_ = std::filesystem::absolute(wanted.item).lexically_normal();
      end_ = "/" + wanted.item;
    }
  }

  void Look(const job::PlanChunkRecord& chunk, const job::Place& place, const job::Record& record) {
    bool here = wanted_.mini_batch && *wanted_.mini_batch >= chunk.first &&
                *wanted_.mini_batch < chunk.first + chunk.Batches();
    if (!wanted_.item.empty()) {
      EachItem(chunk, [&](uint32_t index, uint32_t item, const std::string& path, bool is_file) {
        const bool whole = path == path_ || path == wanted_.item;
        if (!whole && !path.ends_with(end_)) return;
        here = true;
        found_.push_back({chunk.first + index, index, item, is_file, whole});
      });
    }
    if (!here) return;
    std::string bytes;
    job::EncodeRecord(record, bytes);
    kept_.Keep(chunk.first, place, std::move(bytes));
  }

  Result<FoundItem> Choose(const job::JobState& state) {
    if (wanted_.mini_batch) {
      if (state.batches().size() > *wanted_.mini_batch) return FoundItem{*wanted_.mini_batch};
      return Error{Code::kNotFound,
                   fmt::format("there is no mini-batch {}: {} were planned, from 0 on",
                               *wanted_.mini_batch, state.counts().planned)};
    }
    const auto erase = [&](auto without) {
      std::vector<FoundItem> rest;
      std::remove_copy_if(found_.begin(), found_.end(), std::back_inserter(rest), without);
      if (!rest.empty()) found_ = std::move(rest);
    };
    erase([](const FoundItem& place) { return !place.whole; });
    erase([&](const FoundItem& place) {
      return state.StateOf(place.mini_batch) == job::MiniBatch::State::kSucceeded;
    });
    if (found_.size() == 1) return found_.front();
    const std::string item = Printable(wanted_.item, 1000);
    if (found_.empty()) {
      return Error{Code::kNotFound,
                   fmt::format("no mini-batch of the run has {}: write the path of a file, as "
                               "parallelrun failures OUT --paths prints them",
                               item)};
    }
    std::string ids;
    for (size_t i = 0; i < std::min(found_.size(), kMostNamed); ++i) {
      ids += fmt::format("{}{}", i == 0 ? "" : ", ", found_[i].mini_batch);
    }
    return Error{Code::kInvalid,
                 fmt::format("{} is in {} mini-batches: choose one with --mini-batch: {}{}", item,
                             found_.size(), ids, found_.size() > kMostNamed ? ", ..." : "")};
  }

  KeptChunks& kept() { return kept_; }

 private:
  const WantedWork& wanted_;
  std::string path_;
  std::string end_;
  std::vector<FoundItem> found_;
  KeptChunks kept_;
};

}  // namespace

Result<FoundWork> FindWork(const Files& files, const std::string& state_folder,
                           const std::vector<plan::PlanInput>& inputs, const WantedWork& wanted) {
  job::JobState state;
  Search search(wanted);
  const Result<uint64_t> run =
      InspectState(files, state_folder,
                   [&](const job::Record& record, const job::Place& place, const job::Place& rows) {
                     const auto* chunk = std::get_if<job::PlanChunkRecord>(&record);
                     if (chunk != nullptr) search.Look(*chunk, place, record);
                     return state.Apply(record, place, rows);
                   });
  if (!run.ok()) return run.error();
  const Result<FoundItem> place = search.Choose(state);
  if (!place.ok()) return place.error();
  FoundWork found;
  found.mini_batch = place->mini_batch;
  if (place->is_file) {
    const job::JobState::Chunk& chunk = state.ChunkOf(place->mini_batch);
    const Result<job::WorkMaker> maker =
        job::WorkMaker::FromRecord(search.kept().bytes(chunk.first));
    if (!maker.ok()) return maker.error();
    found.items = 1;
    found.work = maker->MakePiece(place->index, place->mini_batch, place->item, 1);
    return found;
  }
  plan::PlanStore plan(search.kept(), inputs);
  Result<plan::PlannedWork> work = plan.Work(state, place->mini_batch);
  if (!work.ok()) return work.error();
  found.items = state.batch(place->mini_batch).items;
  found.work = std::move(work->work);
  return found;
}

}  // namespace parallelrun::cli
