// Which columns of a slice of delimited text may hold what a number loses: a member of its chunk's
// format (docs/ledger.md), of which each Work gets its own part (docs/worker-protocol.md). A number
// for each slice, a bit for each column. Pure, thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "job/plan_chunk.h"

namespace parallelrun::job {

// Bit of a column; those from the last bit on share it.
constexpr uint64_t MayLoseBit(uint64_t column) {
  return uint64_t{1} << (column < 63 ? column : 63);
}

// The format with the member; of groups a list for each.
std::string WithMayLose(std::string_view format, const std::vector<uint64_t>& slices);
std::string WithMayLose(std::string_view format, const std::vector<std::vector<uint64_t>>& groups);

struct MayLose {
  std::string format;                 // without the member
  std::vector<std::string> of_batch;  // what is in its place in the Work of each mini-batch
};
// nullopt where the chunk says nothing of its slices.
std::optional<MayLose> MayLoseOf(const PlanChunkRecord& chunk);

}  // namespace parallelrun::job
