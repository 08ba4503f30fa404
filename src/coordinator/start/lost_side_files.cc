#include "coordinator/start/lost_side_files.h"

#include <map>
#include <memory>
#include <utility>

#include "ledger/ledger.h"
#include "output/side_files.h"

namespace parallelrun::coordinator {
namespace {

constexpr size_t kMostLost = size_t{1} << 16;  // of one record

using AttemptName = std::pair<job::BatchId, std::pair<uint32_t, uint64_t>>;

AttemptName AttemptOf(job::BatchId id, const job::Fence& fence) {
  return {id, {fence.epoch, fence.number}};
}

}  // namespace

Result<std::vector<job::AgainRecord>> ResultsWithoutSideFiles(const Files& files,
                                                              const std::string& state_folder,
                                                              const job::JobState& state,
                                                              const std::string& output_folder,
                                                              const std::string& staging) {
  const Result<std::unique_ptr<output::StagedFiles>> staged =
      output::StagedFiles::Open(files, {output_folder, staging, {}, {}});
  if (!staged.ok()) return staged.error();
  std::map<AttemptName, job::SideLine> lines;  // few: of results that came in parts
  std::map<job::ProcessId, job::AgainRecord> lost;
  std::vector<job::AgainRecord> records;
  const auto visit = [&](const job::Record& record, const job::Place&,
                         const job::Place&) -> Status {
    if (const auto* const part = std::get_if<job::RowsRecord>(&record)) {
      const auto [line, is_new] = lines.try_emplace(AttemptOf(part->id, part->fence));
      (void)line->second.RowsIn(part->rows, is_new);
      return {};
    }
    const auto* const result = std::get_if<job::ResultRecord>(&record);
    if (result == nullptr) return {};
    const auto [line, is_new] = lines.try_emplace(AttemptOf(result->id, result->fence));
    (void)line->second.RowsIn(result->rows, is_new);
    const Result<job::SideList> list = job::ParseSideList(line->second.line().value_or(""));
    lines.erase(line);
    if (!state.known(result->id)) return {};
    const job::MiniBatch now = state.batch(result->id);
    // What cannot be read ends the job in words of its own.
    const bool counts =
        now.state == job::MiniBatch::State::kSucceeded && now.fence == result->fence && list.ok();
    if (!counts) return {};
    const Result<bool> has = (*staged)->Has(*list);
    if (!has.ok()) return has.error();
    if (*has) return {};
    job::AgainRecord& again = lost[{result->node, result->process}];
    again.node = result->node;
    again.process = result->process;
    again.results.push_back({result->id, result->items_succeeded, result->row_count});
    if (again.results.size() == kMostLost) {
      records.push_back(std::exchange(again, {again.node, again.process, {}}));
    }
    return {};
  };
  const Result<uint64_t> read = ledger::Ledger::Inspect(files, state_folder, visit);
  if (!read.ok()) return read.error();
  for (auto& [process, again] : lost) {
    if (!again.results.empty()) records.push_back(std::move(again));
  }
  return records;
}

}  // namespace parallelrun::coordinator
