#include "coordinator/core/standstill.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

namespace parallelrun {
namespace {

// Agents have the processes write them when they hear of the verdict.
constexpr char kStacks[] =
    "where each process is in Python stands at the end of its log, "
    "user/stderr/<node>/<process>.stderr.txt; fix that, or raise "
    "spec.progressUpdateTimeoutSeconds";

}  // namespace

// What came right before this is progress of now: it is not moved beyond that.
void Standstill::Tick(Instant worked, bool usable) {
  if (!usable) moved_ = std::min(moved_ + (worked - ticked_), worked);
  ticked_ = worked;
}

std::optional<Verdict> Standstill::Overdue(const JobState& state, Instant worked,
                                           const std::function<std::string()>& why) const {
  const JobCounts& counts = state.counts();
  const bool done = counts.succeeded + counts.failed == counts.planned;
  if (!done || state.plan_ended()) {
    if (worked - moved_ <= limits_.progress) return std::nullopt;
    const std::string waits = why();
    return Verdict{Outcome::kFailed, "NoProgress",
                   fmt::format("no mini-batch was finished for {}: {}",
                               HumanDuration(limits_.progress), waits.empty() ? kStacks : waits)};
  }
  // The processes have nothing to do: what is waited for is the listing.
  if (counts.planned == 0) {
    if (worked - started_ <= limits_.first_task) return std::nullopt;
    return Verdict{Outcome::kFailed, "FirstTaskTimeout",
                   fmt::format("no mini-batch was planned within {}: the listing of the input is "
                               "too slow; raise spec.firstTaskCreationTimeoutSeconds",
                               HumanDuration(limits_.first_task))};
  }
  const Duration most = std::max(limits_.first_task, limits_.progress);
  if (worked - moved_ <= most) return std::nullopt;
  return Verdict{Outcome::kFailed, "FirstTaskTimeout",
                 fmt::format("all {} mini-batches that are planned are finished, and no other was "
                             "planned for {}: the listing of the input is too slow; raise "
                             "spec.firstTaskCreationTimeoutSeconds",
                             counts.planned, HumanDuration(most))};
}

}  // namespace parallelrun
