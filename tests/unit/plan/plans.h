// Whole plans, for tests of the planner.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "job/record_codec.h"
#include "job/records.h"
#include "plan/input_store.h"
#include "plan/planner.h"
#include "tests/support/disk_files.h"

namespace parallelrun::plan {

inline PlanInput FilesInput(const std::string& root, uint64_t batch_size) {
  PlanInput input;
  input.name = "images";
  input.root = root;
  input.batch_size = batch_size;
  return input;
}

// As with typing: PerMiniBatch: the format then says nothing of each slice.
inline PlanInput Rows(const std::string& root, uint64_t batch_size,
                      api::HeaderMode header = api::HeaderMode::kAllFiles) {
  PlanInput input = FilesInput(root, batch_size);
  input.name = "rows";
  input.kind = PlanKind::kDelimited;
  input.tabular.header = header;
  input.tabular.typing = api::Typing::kPerMiniBatch;
  return input;
}

// What a version of a file of a folder says.
inline uint64_t SizeOf(std::string_view version) { return Decoder(version).U64(); }
inline int64_t ModifiedNs(std::string_view version) { return Decoder(version.substr(8)).I64(); }

struct Chunk {
  std::string encoded;
  job::PlanChunkRecord record;  // points into `encoded`
};

struct Plan {
  std::vector<std::unique_ptr<Chunk>> chunks;
  std::string error;
  uint64_t batches = 0, items = 0;
  std::vector<std::string> notes;

  const job::FilesChunk& files(size_t i) const {
    return std::get<job::FilesChunk>(chunks[i]->record.content);
  }
  const job::TabularChunk& rows(size_t i) const {
    return std::get<job::TabularChunk>(chunks[i]->record.content);
  }
  const job::FileGroupsChunk& file_groups(size_t i) const {
    return std::get<job::FileGroupsChunk>(chunks[i]->record.content);
  }
  const job::TableGroupsChunk& table_groups(size_t i) const {
    return std::get<job::TableGroupsChunk>(chunks[i]->record.content);
  }
  std::vector<uint32_t> Batches() const {
    std::vector<uint32_t> counts;
    for (const auto& chunk : chunks) counts.push_back(chunk->record.Batches());
    return counts;
  }
};

// What a plan names, in its order.
inline std::vector<std::string> NamesOf(const Plan& plan) {
  std::vector<std::string> names;
  for (size_t i = 0; i < plan.chunks.size(); ++i) {
    std::string_view rest = plan.files(i).names;
    for (size_t end = rest.find('\0'); end != rest.npos; end = rest.find('\0')) {
      names.emplace_back(rest.substr(0, end));
      rest.remove_prefix(end + 1);
    }
    names.emplace_back(rest);
  }
  return names;
}

inline Plan MakePlanOn(const OpenStore& stores, const std::vector<PlanInput>& inputs,
                       const PlanCursor& from = {}) {
  Planner planner(inputs, stores, from);
  Plan plan;
  while (true) {
    auto next = planner.Next();
    if (!next.ok()) {
      plan.error = std::string(CodeName(next.error().code)) + ": " + next.error().message;
      break;
    }
    if (!*next) break;
    auto chunk = std::make_unique<Chunk>();
    chunk->encoded = std::move(**next);
    std::string_view bytes = chunk->encoded;
    auto decoded = job::DecodeRecord(bytes);
    EXPECT_TRUE(decoded.ok() && bytes.empty());
    chunk->record = std::get<job::PlanChunkRecord>(decoded->record);
    plan.chunks.push_back(std::move(chunk));
  }
  plan.batches = planner.batches();
  plan.items = planner.items();
  plan.notes = planner.TakeNotes();
  return plan;
}

// Of folders.
inline Plan MakePlan(const std::vector<PlanInput>& inputs, const PlanCursor& from = {},
                     const std::vector<std::string>& forbidden = {}) {
  return MakePlanOn(FolderStores(DiskFiles(), forbidden), inputs, from);
}

// MakePlan, after checking that ids and items are dense and that the plan goes on behind each chunk
// with just the same bytes.
inline Plan PlanFromEverywhere(const std::vector<PlanInput>& inputs,
                               const OpenStore& stores = FolderStores(DiskFiles())) {
  Plan plan = MakePlanOn(stores, inputs);
  EXPECT_EQ(plan.error, "");
  uint64_t batches = 0;
  uint64_t items = 0;
  for (size_t i = 0; i < plan.chunks.size(); ++i) {
    const job::PlanChunkRecord& record = plan.chunks[i]->record;
    EXPECT_EQ(record.first, batches);
    EXPECT_EQ(record.first_item, items);
    batches += record.Batches();
    items += record.Items();
    const Plan rest = MakePlanOn(stores, inputs, CursorAfter(record, inputs));
    EXPECT_EQ(rest.error, "");
    EXPECT_EQ(rest.chunks.size(), plan.chunks.size() - i - 1);
    for (size_t k = 0; k < rest.chunks.size() && i + 1 + k < plan.chunks.size(); ++k) {
      EXPECT_EQ(rest.chunks[k]->encoded, plan.chunks[i + 1 + k]->encoded) << i << " " << k;
    }
    EXPECT_EQ(rest.batches, plan.batches);
    EXPECT_EQ(rest.items, plan.items);
  }
  EXPECT_EQ(plan.batches, batches);
  EXPECT_EQ(plan.items, items);
  return plan;
}

}  // namespace parallelrun::plan
