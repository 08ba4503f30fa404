// AgainRecords: results that are void, as records take them (docs/ledger.md, record "again"): by
// process, and no more in one record than is far below what a record may be. Pure.
#pragma once

#include <map>
#include <vector>

#include "job/job_state.h"

namespace parallelrun::coordinator {

// Whether a result of the ledger is the one that counts now: another one may have taken the place
// of a result that was void before. `state` is what that ledger says.
bool StillCounts(const job::JobState& state, const job::ResultRecord& result);

class AgainRecords {
 public:
  static constexpr size_t kMostResults = size_t{1} << 16;  // of one record

  void Add(const job::ResultRecord& result);
  // Each result is in one of them.
  std::vector<job::AgainRecord> Take();

 private:
  std::map<job::ProcessId, job::AgainRecord> open_;
  std::vector<job::AgainRecord> full_;
};

}  // namespace parallelrun::coordinator
