#include "job/verdict.h"

#include <spdlog/fmt/fmt.h>

#include "base/count_of.h"

namespace parallelrun::job {
namespace {

using NameItems = std::function<std::string(BatchId)>;

Verdict Failed(reasons::Reason reason, std::string message, const JobState& state,
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
  return FailedFor(reason, std::move(message));
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

std::string AllOf(uint64_t batches) {
  return batches == 1 ? "the only mini-batch" : fmt::format("all {} mini-batches", batches);
}

std::string ShutdownText(const Shutdowns::Unclosed& unclosed) {
  const Shutdowns::Process& how = unclosed.how;
  return fmt::format(
      "shutdown() did not end well in {} with the results of {}, first in process{:03} of node {}: "
      "{}{}",
      CountOf(unclosed.processes, "process"), CountOf(unclosed.results, "mini-batch"),
      unclosed.first.number, unclosed.first.node, how.message,
      how.log.empty() ? "" : fmt::format(" (log {})", how.log));
}

constexpr char kRetryShutdown[] =
    "; --retry-failed (on a cluster output.ifExists: RetryFailed) runs these mini-batches again";

Verdict Succeeded(const JobCounts& counts, const Losses& losses, bool append_row) {
  if (losses.items == 0) {
    std::string message = AllOf(counts.planned) + " succeeded";
    if (losses.reported > 0) {
      message += fmt::format("; {} got no element from run()", CountOf(losses.reported, "item"));
    }
    return {Outcome::kSucceeded, kComplete, message};
  }
  std::string message = fmt::format(
      "{} of {} {} {}: {} of {} failed", losses.items, CountOf(counts.items_planned, "item"),
      losses.items == 1 ? "has" : "have", append_row ? "no row" : "failed", counts.failed,
      CountOf(counts.planned, "mini-batch"));
  if (losses.isolated > 0) {
    message +=
        fmt::format(", {} of them failed by themselves (see dead-letter.jsonl)", losses.isolated);
  }
  message += Within(losses, ", ");
  if (losses.allowed) message += "; within the thresholds";
  return {Outcome::kSucceeded, kWithFailures, message};
}

}  // namespace

Verdict FailedFor(reasons::Reason reason, std::string message) {
  return {Outcome::kFailed, reason, std::move(message)};
}

std::optional<Verdict> Decide(const JobState& state, const FailureRules& rules,
                              const NameItems& items) {
  const JobCounts& counts = state.counts();
  if (!state.side_names().trouble().empty()) {
    return FailedFor("SideFilesUnusable", state.side_names().trouble());
  }
  const Losses losses = CountLosses(counts, rules);
  const int64_t items_allowed = rules.thresholds.error_threshold.value_or(-1);
  const int64_t batches_allowed = rules.thresholds.allowed_failed_count.value_or(-1);
  const double percent_allowed = rules.thresholds.allowed_failed_percent.value_or(100);
  if (Exceeds(losses.items, items_allowed)) {
    const std::string within = Within(losses, " (");
    return Failed("ErrorThresholdExceeded",
                  fmt::format("{} failed{}{}; spec.errorThreshold allows {}",
                              CountOf(losses.items, "item", "has", "have"), within,
                              within.empty() ? "" : ")", items_allowed),
                  state, items);
  }
  if (Exceeds(counts.failed, batches_allowed)) {
    return Failed("AllowedFailedCountExceeded",
                  fmt::format("{} failed; spec.allowedFailedCount allows {}",
                              CountOf(counts.failed, "mini-batch", "has", "have"), batches_allowed),
                  state, items);
  }
  if (state.plan_ended() && static_cast<double>(counts.failed) * 100 >
                                percent_allowed * static_cast<double>(counts.planned)) {
    return Failed("AllowedFailedPercentExceeded",
                  fmt::format("{} of {} {} failed; spec.allowedFailedPercent allows {} %",
                              counts.failed, CountOf(counts.planned, "mini-batch"),
                              counts.failed == 1 ? "has" : "have", percent_allowed),
                  state, items);
  }
  if (!state.all_settled()) return std::nullopt;
  if (counts.planned == 0 && !rules.may_be_empty.empty()) {
    return Verdict{Outcome::kSucceeded, kComplete,
                   fmt::format("EMPTY: there was no item in {}, which allowEmpty permits, so there "
                               "was nothing to run",
                               rules.may_be_empty)};
  }
  if (counts.succeeded == 0) {
    return Failed("NothingSucceeded",
                  AllOf(counts.failed) + (counts.failed == 1 ? " has failed" : " have failed"),
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
    return FailedFor(kShutdownFailed, ShutdownText(unclosed) +
                                          ". What it was to write may be missing" + kRetryShutdown);
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
                "succeeded: fix it and run again",
                state, items);
}

}  // namespace parallelrun::job
