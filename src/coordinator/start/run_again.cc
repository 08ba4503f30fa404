#include "coordinator/start/run_again.h"

#include <map>
#include <utility>

namespace parallelrun::coordinator {
namespace {

// Of one record, so that it is far below what a record may be.
constexpr size_t kMostResults = size_t{1} << 16;

}  // namespace

Result<std::vector<job::AgainRecord>> ResultsToRunAgain(const ledger::Ledger& ledger,
                                                        const job::JobState& state) {
  std::map<job::ProcessId, job::AgainRecord> open;
  for (const job::ProcessId& process : state.shutdowns().NotClosed()) {
    open[process] = {process.node, process.number, {}};
  }
  std::vector<job::AgainRecord> records;
  if (open.empty()) return records;
  const auto visit = [&](const job::Record& record, const job::Place&,
                         const job::Place&) -> Status {
    const auto* const result = std::get_if<job::ResultRecord>(&record);
    if (result == nullptr) return {};
    const auto found = open.find({result->node, result->process});
    if (found == open.end() || !state.known(result->id)) return {};
    const job::MiniBatch now = state.batch(result->id);
    // Another one may have taken the place of a result that was void before.
    if (now.state != job::MiniBatch::State::kSucceeded || now.fence != result->fence) return {};
    job::AgainRecord& again = found->second;
    again.results.push_back({result->id, result->items_succeeded, result->row_count});
    if (again.results.size() == kMostResults) {
      records.push_back(std::exchange(again, {again.node, again.process, {}}));
    }
    return {};
  };
  const Result<uint64_t> read = ledger.Replay(visit);
  if (!read.ok()) return read.error();
  for (auto& [process, again] : open) {
    if (!again.results.empty()) records.push_back(std::move(again));
  }
  return records;
}

}  // namespace parallelrun::coordinator
