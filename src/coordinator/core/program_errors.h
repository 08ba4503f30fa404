// ProgramErrors gathers what speaks against the program rather than its data: processes that do not
// come through init(), and attempts that fail by an error of the program, such as a name that is
// not defined. It says when that is enough to end a job that has not one result. Times are working
// time. Pure; not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/time.h"
#include "coordinator/core/nodes.h"
#include "job/ids.h"
#include "job/job_state.h"

namespace parallelrun::coordinator {

class ProgramErrors {
 public:
  // `processes`: of each node.
  ProgramErrors(uint32_t processes, WorkInstant worked) : processes_(processes), started_(worked) {}

  // --- what was told
  void InitFailed(std::string why);
  // A node has tried init() for the last time.
  void GaveUp(std::string why);
  // A node's container ran out of memory, or `disk`: of the disk that it may use, before one of its
  // processes was ready.
  void KilledInInit(uint32_t node, uint32_t processes, bool disk);
  // It came through init(); it is gone.
  void ProcessReady(uint32_t node, uint32_t process) { ready_[node].insert(process); }
  void ProcessGone(uint32_t node, uint32_t process) { ready_[node].erase(process); }
  // Until one has succeeded.
  void AttemptFailed(uint32_t node, uint32_t process, job::BatchId id, std::string_view kind,
                     std::string_view message);

  // --- what it means; nullopt: the job goes on
  std::optional<job::Verdict> Judge(const job::JobState& state, const Nodes& nodes,
                                    WorkInstant worked,
                                    const std::function<std::string(job::BatchId)>& items) const;

  // Worker processes that did not come through their start, in this epoch, and the last one's
  // error.
  uint64_t init_failures() const { return init_failures_; }
  const std::string& init_error() const { return init_error_; }

 private:
  bool AllFailed(const job::JobState& state, uint32_t nodes) const;
  bool AllReadyFailed(uint32_t nodes) const;
  bool NoneStarts(const job::JobState& state, const Nodes& nodes, WorkInstant worked) const;

  const uint32_t processes_;
  const WorkInstant started_;
  uint64_t init_failures_ = 0;
  std::string init_error_;
  // Of errors of the program: the processes of each node, and the mini-batches.
  std::map<uint32_t, std::set<uint32_t>> failed_;
  uint64_t attempts_ = 0;
  std::set<job::BatchId> failed_at_;
  std::map<uint32_t, std::set<uint32_t>> ready_;  // processes that live, as told in this epoch
};

}  // namespace parallelrun::coordinator
