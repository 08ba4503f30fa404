#include "job/verdict.h"

#include <spdlog/fmt/fmt.h>

namespace parallelrun {
namespace {

Verdict Failed(std::string reason, std::string message, const JobState& state) {
  const std::vector<DistinctError> top = state.errors().Top(1);
  if (!top.empty()) {
    const DistinctError& e = top.front();
    message +=
        fmt::format(". Most frequent error ({} of {}): {}: {} (mini-batch {}, node {}, log {})",
                    e.count, state.errors().total(), e.kind, e.message, e.batch, e.node, e.log);
  }
  return {Outcome::kFailed, std::move(reason), std::move(message)};
}

}  // namespace

std::optional<Verdict> Decide(const JobState& state, const Thresholds& thresholds,
                              bool append_row) {
  const JobCounts& counts = state.counts();
  if (thresholds.error_threshold >= 0 &&
      counts.items_failed > static_cast<uint64_t>(thresholds.error_threshold)) {
    return Failed("ErrorThresholdExceeded",
                  fmt::format("{} items have failed; spec.errorThreshold allows {}",
                              counts.items_failed, thresholds.error_threshold),
                  state);
  }
  if (thresholds.allowed_failed_count >= 0 &&
      counts.failed > static_cast<uint64_t>(thresholds.allowed_failed_count)) {
    return Failed("AllowedFailedCountExceeded",
                  fmt::format("{} mini-batches have failed; spec.allowedFailedCount allows {}",
                              counts.failed, thresholds.allowed_failed_count),
                  state);
  }
  if (state.plan_ended() &&
      static_cast<double>(counts.failed) * 100 >
          thresholds.allowed_failed_percent * static_cast<double>(counts.planned)) {
    return Failed(
        "AllowedFailedPercentExceeded",
        fmt::format("{} of {} mini-batches have failed; spec.allowedFailedPercent allows {} %",
                    counts.failed, counts.planned, thresholds.allowed_failed_percent),
        state);
  }
  if (!state.all_settled()) return std::nullopt;
  if (counts.succeeded == 0) {
    return Failed("NothingSucceeded", fmt::format("all {} mini-batches have failed", counts.failed),
                  state);
  }
  if (append_row && counts.rows == 0) {
    return Failed("NoRows",
                  "no run() returned a row, so there is no output to write: return one element for "
                  "each item, or set spec.output.action to SummaryOnly",
                  state);
  }
  if (counts.items_isolated > 0) {
    return Verdict{Outcome::kSucceeded, "CompletedWithFailures",
                   fmt::format("{} of {} mini-batches failed, and {} items by themselves (see "
                               "dead-letter.jsonl), within the thresholds",
                               counts.failed, counts.planned, counts.items_isolated)};
  }
  if (counts.failed > 0) {
    return Verdict{Outcome::kSucceeded, "CompletedWithFailures",
                   fmt::format("{} of {} mini-batches failed, within the thresholds", counts.failed,
                               counts.planned)};
  }
  return Verdict{Outcome::kSucceeded, "Complete",
                 fmt::format("all {} mini-batches succeeded", counts.planned)};
}

}  // namespace parallelrun
