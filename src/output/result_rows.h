// The rows of results as the ledger holds them, in the order of the output. Blocking; the ledger
// and the state outlive it, and do not change meanwhile. One thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "job/job_state.h"
#include "job/side_list.h"
#include "ledger/ledger.h"

namespace parallelrun::output {

enum class RowOrder { kMiniBatch, kCompletion };

// Neighbours are read at once: in mini-batch order most rows lie close together.
class RowReader {
 public:
  explicit RowReader(const ledger::Ledger& ledger) : ledger_(ledger) {}
  // Valid until the next call. kCorrupt: the ledger ends before them.
  Result<std::string_view> Read(const job::Place& place);
  // The same in pieces that are not large, up to the first error, or until `each` says that it has
  // enough (false).
  using EachPiece = std::function<Result<bool>(std::string_view piece)>;
  Status ReadInPieces(job::Place place, const EachPiece& each);

 private:
  const ledger::Ledger& ledger_;
  job::Place window_;
  std::string bytes_;
};

// The succeeded mini-batches in the order of the output. Memory: none in their own order, else 4
// bytes each.
class Succession {
 public:
  Succession(const job::JobState& state, RowOrder order);

  // Calls `visit(id, parts)` with the rows of each, up to the first error; it may have none.
  template <typename Visit>
  Status Each(Visit visit) const {
    const size_t count = sorted_ ? sorted_->size() : state_.batches().size();
    std::vector<job::JobState::RowsPart> parts;  // few
    for (size_t i = 0; i < count; ++i) {
      const job::BatchId id = sorted_ ? (*sorted_)[i] : i;
      if (!Succeeded(id)) continue;
      parts.clear();
      state_.AppendRows(id, parts);
      if (Status visited = visit(id, parts); !visited.ok()) return visited;
    }
    return {};
  }

 private:
  bool Succeeded(job::BatchId id) const {
    return state_.StateOf(id) == job::MiniBatch::State::kSucceeded;
  }

  const job::JobState& state_;
  std::optional<std::vector<uint32_t>> sorted_;  // ids of whole mini-batches: below 2³²
};

// Of a job that stages side files: the list of each result, with its mini-batch, in the order of
// the input, up to the first error. Of a mini-batch that was split there are several.
Status EachSideList(const ledger::Ledger& ledger, const job::JobState& state,
                    const std::function<Status(job::BatchId, const job::SideList&)>& each);

}  // namespace parallelrun::output
