#include "coordinator/start/lost_side_files.h"

#include <map>
#include <memory>
#include <utility>

#include "coordinator/start/again_records.h"
#include "output/side_files.h"

namespace parallelrun::coordinator {
namespace {

constexpr size_t kAskedTogether = 256;  // results

using AttemptName = std::pair<job::BatchId, std::pair<uint32_t, uint64_t>>;

AttemptName AttemptOf(job::BatchId id, const job::Fence& fence) {
  return {id, {fence.epoch, fence.number}};
}

// Results with their lists, until so many are there that somebody is asked for them.
class LostResults {
 public:
  explicit LostResults(const HaveSideFiles& have) : have_(have) {}

  Status Add(const job::ResultRecord& result, job::SideList list) {
    job::ResultRecord& kept = results_.emplace_back();  // without what it views
    kept.id = result.id;
    kept.node = result.node;
    kept.process = result.process;
    kept.items_succeeded = result.items_succeeded;
    kept.row_count = result.row_count;
    lists_.push_back(std::move(list));
    return lists_.size() < kAskedTogether ? Status() : Ask();
  }

  Status Ask() {
    if (lists_.empty()) return {};
    const Result<std::vector<bool>> have = have_(lists_);
    if (!have.ok()) return have.error();
    for (size_t i = 0; i < lists_.size(); ++i) {
      if (!(*have)[i]) lost_.Add(results_[i]);
    }
    lists_.clear();
    results_.clear();
    return {};
  }

  std::vector<job::AgainRecord> Take() { return lost_.Take(); }

 private:
  const HaveSideFiles& have_;
  std::vector<job::ResultRecord> results_;
  std::vector<job::SideList> lists_;  // of these
  AgainRecords lost_;
};

}  // namespace

HaveSideFiles HaveStagedFiles(const Files& files, const std::string& output_folder,
                              const std::string& staging) {
  return [&files, output_folder,
          staging](const std::vector<job::SideList>& lists) -> Result<std::vector<bool>> {
    const Result<std::unique_ptr<output::StagedFiles>> staged =
        output::StagedFiles::Open(files, {output_folder, staging, {}, {}});
    if (!staged.ok()) return staged.error();
    std::vector<bool> have;
    for (const job::SideList& list : lists) {
      const Result<bool> has = (*staged)->Has(list);
      if (!has.ok()) return has.error();
      have.push_back(*has);
    }
    return have;
  };
}

Result<std::vector<job::AgainRecord>> ResultsWithoutSideFiles(const ledger::Ledger& ledger,
                                                              const job::JobState& state,
                                                              const HaveSideFiles& have) {
  std::map<AttemptName, job::SideLine> lines;  // few: of results that came in parts
  LostResults lost(have);
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
    Result<job::SideList> list = job::ParseSideList(line->second.line().value_or(""));
    lines.erase(line);
    // What cannot be read ends the job in words of its own.
    if (!list.ok() || list->files.empty() || !StillCounts(state, *result)) return {};
    return lost.Add(*result, std::move(*list));
  };
  const Result<uint64_t> read = ledger.Replay(visit);
  if (!read.ok()) return read.error();
  if (Status asked = lost.Ask(); !asked.ok()) return asked.error();
  return lost.Take();
}

}  // namespace parallelrun::coordinator
