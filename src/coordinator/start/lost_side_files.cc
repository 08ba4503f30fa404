#include "coordinator/start/lost_side_files.h"

#include <map>
#include <memory>
#include <utility>

#include "coordinator/start/again_records.h"
#include "output/side_files.h"

namespace parallelrun::coordinator {
namespace {

using AttemptName = std::pair<job::BatchId, std::pair<uint32_t, uint64_t>>;

AttemptName AttemptOf(job::BatchId id, const job::Fence& fence) {
  return {id, {fence.epoch, fence.number}};
}

}  // namespace

Result<std::vector<job::AgainRecord>> ResultsWithoutSideFiles(const Files& files,
                                                              const ledger::Ledger& ledger,
                                                              const job::JobState& state,
                                                              const std::string& output_folder,
                                                              const std::string& staging) {
  const Result<std::unique_ptr<output::StagedFiles>> staged =
      output::StagedFiles::Open(files, {output_folder, staging, {}, {}});
  if (!staged.ok()) return staged.error();
  std::map<AttemptName, job::SideLine> lines;  // few: of results that came in parts
  AgainRecords lost;
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
    // What cannot be read ends the job in words of its own.
    if (!list.ok() || !StillCounts(state, *result)) return {};
    const Result<bool> has = (*staged)->Has(*list);
    if (!has.ok()) return has.error();
    if (!*has) lost.Add(*result);
    return {};
  };
  const Result<uint64_t> read = ledger.Replay(visit);
  if (!read.ok()) return read.error();
  return lost.Take();
}

}  // namespace parallelrun::coordinator
