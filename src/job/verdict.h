// When a job is over, and how. Pure.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "job/job_state.h"
#include "job/losses.h"
#include "reasons/reason.h"

namespace parallelrun::job {

// The reasons of a success: all items are there, or some have failed, within the thresholds.
inline constexpr reasons::Reason kComplete("Complete");
inline constexpr reasons::Reason kWithFailures("CompletedWithFailures");

// What was run succeeded, but some shutdown() did not: a failure where the script itself writes the
// results (SummaryOnly).
inline constexpr reasons::Reason kShutdownFailed("ShutdownFailed");

// Of a job that has failed.
Verdict FailedFor(reasons::Reason reason, std::string message);

// The verdict that the state calls for, or nullopt while the job goes on. With an appended output
// file a run without a single row has failed. Processes that have not ended yet are not looked at.
// `items` says what a mini-batch is made of, "": unknown.
std::optional<Verdict> Decide(const JobState& state, const FailureRules& rules,
                              const std::function<std::string(BatchId)>& items);

// Of a job in which every process has failed by an error of the program, and nothing succeeded.
Verdict ProgramVerdict(const JobState& state, const std::function<std::string(BatchId)>& items);

}  // namespace parallelrun::job
