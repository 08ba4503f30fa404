#include "job/verdict.h"

#include <spdlog/fmt/fmt.h>

namespace parallelrun {
namespace {

using NameItems = std::function<std::string(BatchId)>;

Verdict Failed(std::string reason, std::string message, const JobState& state,
               const NameItems& items) {
  const std::vector<DistinctError> top = state.errors().Top(1);
  if (!top.empty()) {
    const DistinctError& e = top.front();
    const std::string names = items(e.batch);
    message += fmt::format(". Most frequent error ({} of {}): {}: {} (mini-batch {}{}{}, node {}",
                           e.count, state.errors().total(), e.kind, e.message,
                           MiniBatchText(e.batch), names.empty() ? "" : ", ", names, e.node);
    message += e.log.empty() ? ")" : fmt::format(", log {})", e.log);
  }
  return {Outcome::kFailed, std::move(reason), std::move(message)};
}

bool Exceeds(uint64_t count, int64_t threshold) {
  return threshold >= 0 && count > static_cast<uint64_t>(threshold);
}

// What the failed items are made of, as far as they were lost in other ways than with their whole
// mini-batch.
std::string Within(const Losses& losses, const char* before) {
  std::string text;
  if (losses.missing > 0) {
    text += fmt::format("{}{} of them got no element from run()", before, losses.missing);
  }
  if (losses.skipped > 0) {
    text += fmt::format("{}{} of them left out as bad rows", text.empty() ? before : ", ",
                        losses.skipped);
  }
  return text;
}

std::string ShutdownText(const Shutdowns::Unclosed& unclosed) {
  const Shutdowns::Process& how = unclosed.how;
  return fmt::format(
      "shutdown() did not end well in {} process{} with the results of {} mini-batch{}, first in "
      "process{:03} of node {}: {}{}",
      unclosed.processes, unclosed.processes == 1 ? "" : "es", unclosed.results,
      unclosed.results == 1 ? "" : "es", unclosed.first.number, unclosed.first.node, how.message,
      how.log.empty() ? "" : fmt::format(" (log {})", how.log));
}

constexpr char kRetryShutdown[] =
    "; --retry-failed (on a cluster output.ifExists: RetryFailed) runs these mini-batches again";

Verdict Succeeded(const JobCounts& counts, const Losses& losses, bool append_row) {
  if (losses.items == 0) {
    std::string message = fmt::format("all {} mini-batches succeeded", counts.planned);
    if (losses.reported > 0) {
      message += fmt::format("; {} items got no element from run()", losses.reported);
    }
    return {Outcome::kSucceeded, kComplete, message};
  }
  std::string message = fmt::format(
      "{} of {} items {}: {} of {} mini-batches failed", losses.items, counts.items_planned,
      append_row ? "have no row" : "have failed", counts.failed, counts.planned);
  if (losses.isolated > 0) {
    message +=
        fmt::format(", {} of them failed by themselves (see dead-letter.jsonl)", losses.isolated);
  }
  message += Within(losses, ", ");
  if (losses.allowed) message += "; within the thresholds";
  return {Outcome::kSucceeded, kWithFailures, message};
}

}  // namespace

std::optional<Verdict> Decide(const JobState& state, const FailureRules& rules,
                              const NameItems& items) {
  const JobCounts& counts = state.counts();
  const Losses losses = CountLosses(counts, rules);
  const int64_t items_allowed = rules.thresholds.error_threshold.value_or(-1);
  const int64_t batches_allowed = rules.thresholds.allowed_failed_count.value_or(-1);
  const double percent_allowed = rules.thresholds.allowed_failed_percent.value_or(100);
  if (Exceeds(losses.items, items_allowed)) {
    const std::string within = Within(losses, " (");
    return Failed("ErrorThresholdExceeded",
                  fmt::format("{} items have failed{}{}; spec.errorThreshold allows {}",
                              losses.items, within, within.empty() ? "" : ")", items_allowed),
                  state, items);
  }
  if (Exceeds(counts.failed, batches_allowed)) {
    return Failed("AllowedFailedCountExceeded",
                  fmt::format("{} mini-batches have failed; spec.allowedFailedCount allows {}",
                              counts.failed, batches_allowed),
                  state, items);
  }
  if (state.plan_ended() && static_cast<double>(counts.failed) * 100 >
                                percent_allowed * static_cast<double>(counts.planned)) {
    return Failed(
        "AllowedFailedPercentExceeded",
        fmt::format("{} of {} mini-batches have failed; spec.allowedFailedPercent allows {} %",
                    counts.failed, counts.planned, percent_allowed),
        state, items);
  }
  if (!state.all_settled()) return std::nullopt;
  if (counts.succeeded == 0) {
    return Failed("NothingSucceeded", fmt::format("all {} mini-batches have failed", counts.failed),
                  state, items);
  }
  if (rules.append_row && counts.rows == 0) {
    return Failed("NoRows",
                  "no run() returned a row, so there is no output to write: return one element for "
                  "each item, or set spec.output.action to SummaryOnly",
                  state, items);
  }
  const Shutdowns::Unclosed unclosed = state.shutdowns().unclosed();
  if (unclosed.processes > 0 && !rules.append_row) {
    return Verdict{
        Outcome::kFailed, kShutdownFailed,
        ShutdownText(unclosed) + ". What it was to write may be missing" + kRetryShutdown};
  }
  Verdict verdict = Succeeded(counts, losses, rules.append_row);
  if (unclosed.processes > 0) {
    if (losses.items == 0) verdict.reason = kShutdownFailed;
    verdict.message += "; all rows are there, but " + ShutdownText(unclosed) + kRetryShutdown;
  }
  return verdict;
}

Verdict ProgramVerdict(const JobState& state, const NameItems& items) {
  return Failed("ScriptUnusable",
                "every worker process has failed by an error of the script itself, and nothing has "
                "succeeded: correct it and start the job again",
                state, items);
}

}  // namespace parallelrun
