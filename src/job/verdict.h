// When a job is over, and how. Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "job/job_state.h"

namespace parallelrun {

// Exceeded means strictly greater; only final failures count, so counts never go back.
struct Thresholds {
  int64_t error_threshold = -1;         // failed items; -1: any number
  int64_t allowed_failed_count = -1;    // failed mini-batches; -1: any number
  double allowed_failed_percent = 100;  // of all mini-batches, once the listing has ended

  bool operator==(const Thresholds&) const = default;
};

// The verdict that the state calls for, or nullopt while the job goes on. `append_row`: the job
// has an appended output file, so a run without a single row has failed.
std::optional<Verdict> Decide(const JobState& state, const Thresholds& thresholds, bool append_row);

}  // namespace parallelrun
