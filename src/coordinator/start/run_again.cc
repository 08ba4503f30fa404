#include "coordinator/start/run_again.h"

#include <set>

#include "coordinator/start/again_records.h"

namespace parallelrun::coordinator {

Result<std::vector<job::AgainRecord>> ResultsToRunAgain(const ledger::Ledger& ledger,
                                                        const job::JobState& state) {
  const std::vector<job::ProcessId> open = state.shutdowns().NotClosed();
  if (open.empty()) return std::vector<job::AgainRecord>();
  const std::set<job::ProcessId> not_closed(open.begin(), open.end());
  AgainRecords again;
  const auto visit = [&](const job::Record& record, const job::Place&,
                         const job::Place&) -> Status {
    const auto* const result = std::get_if<job::ResultRecord>(&record);
    if (result == nullptr || !not_closed.contains({result->node, result->process})) return {};
    if (StillCounts(state, *result)) again.Add(*result);
    return {};
  };
  const Result<uint64_t> read = ledger.Replay(visit);
  if (!read.ok()) return read.error();
  return again.Take();
}

}  // namespace parallelrun::coordinator
