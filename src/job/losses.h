// Which items a job has lost, by the rules that the job wrote: what is counted in its thresholds,
// its progress, its reports and its exit status. Pure, thread-safe.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "job/job_state.h"

namespace parallelrun::job {

// Exceeded means strictly greater; only final failures count, so counts never go back. None: not
// written; any number may fail then, but nobody has said so.
struct Thresholds {
  std::optional<int64_t> error_threshold;        // failed items; -1: any number
  std::optional<int64_t> allowed_failed_count;   // failed mini-batches; -1: any number
  std::optional<double> allowed_failed_percent;  // of all mini-batches, once the listing has ended

  bool operator==(const Thresholds&) const = default;
};

struct FailureRules {
  Thresholds thresholds;
  bool append_row = true;           // the job has an appended output file
  bool short_return_fails = false;  // fewer elements than items fail an attempt
  // The inputs that may be without an item, "inputs[a], inputs[b]"; empty: none may.
  std::string may_be_empty = {};

  // Items for which a run() that succeeded returned no element are failed ones. They may change
  // their kind with the thresholds: the ledger only says how many there are.
  bool MissingItemsFail() const;
  // Of a result without an element for `missing` items, and with `skipped` left out beside those.
  uint32_t FailedOf(uint32_t missing, uint32_t skipped) const;
};

struct Losses {
  uint64_t items = 0;     // that have failed
  uint64_t missing = 0;   // of those, run() returned no element for them
  uint64_t isolated = 0;  // of those, by themselves
  uint64_t skipped = 0;   // of those, left out as unreadable, in mini-batches that succeeded
  uint64_t reported = 0;  // run() returned no element for them, which is no loss
  // The thresholds that the job wrote speak of all of them.
  bool allowed = true;
};

Losses CountLosses(const JobCounts& counts, const FailureRules& rules);

// "98 succeeded, 0 failed, 2 without an element", for people.
std::string ItemsText(const JobCounts& counts, const Losses& losses);

// What a spec's JSON says of them.
Thresholds ThresholdsOf(const nlohmann::json& spec);

// What a job's JSON says of them; `job` without a word about something means its default.
FailureRules RulesOf(const std::string& job);

// Canonical JSON of a job with its thresholds replaced.
std::string WithThresholds(const std::string& job, const Thresholds& thresholds);

}  // namespace parallelrun::job
