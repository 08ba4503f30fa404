// The files of a plan chunk. Pure, thread-safe.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "job/plan_chunk.h"
#include "plan/source.h"

namespace parallelrun::plan {

// Calls `visit(path, version)` for each file of a chunk; for a table once in each chunk.
template <typename Visit>
void EachPlannedFile(const job::PlanChunkRecord& chunk, Visit visit) {
  const auto each_name = [&visit](std::string_view root, std::string_view names,
                                  const std::vector<std::string_view>& versions) {
    const std::string folder(root);
    for (const std::string_view version : versions) {
      const size_t end = std::min(names.find('\0'), names.size());
      visit(JoinPath(folder, names.substr(0, end)), version);
      names.remove_prefix(std::min(end + 1, names.size()));
    }
  };
  if (const auto* files = std::get_if<job::FilesChunk>(&chunk.content)) {
    each_name(files->root, files->names, files->versions);
  } else if (const auto* groups = std::get_if<job::FileGroupsChunk>(&chunk.content)) {
    for (const job::FileGroup& group : groups->groups) {
      each_name(groups->root, group.names, group.versions);
    }
  } else if (const auto* table = std::get_if<job::TabularChunk>(&chunk.content)) {
    visit(table->path, table->version);
  } else if (const auto* tables = std::get_if<job::TableGroupsChunk>(&chunk.content)) {
    for (const job::TableGroup& group : tables->groups) {
      for (const job::TableSlice& slice : group.slices) visit(slice.path, slice.version);
    }
  }
}

}  // namespace parallelrun::plan
