#include "coordinator/log_tree/reports.h"

#include <spdlog/fmt/fmt.h>

#include <utility>

#include "base/count_of.h"
#include "base/escape.h"
#include "coordinator/item_names.h"
#include "coordinator/progress.h"
#include "output/own_places.h"

namespace parallelrun::coordinator {
namespace {

constexpr size_t kMessageBytes = 4096;

std::string ClockText(Duration duration) {
  const int64_t s = std::chrono::duration_cast<seconds>(duration).count();
  return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

// What follows the processing: concatenating the rows, and the result.
std::string EndOf(const Coordinator& coordinator) {
  const job::JobState& state = coordinator.state();
  if (coordinator.phase() == Coordinator::Phase::kClosing) {
    return " Waiting for the processes to end their shutdown().";
  }
  if (coordinator.phase() == Coordinator::Phase::kFinalizing) {
    return fmt::format(" Concatenating {} rows into the output.", state.counts().rows);
  }
  if (coordinator.phase() != Coordinator::Phase::kEnded || !state.verdict()) return "";
  return fmt::format(" {}: {}.",
                     state.verdict()->outcome == job::Outcome::kSucceeded ? "Succeeded" : "Failed",
                     state.verdict()->reason);
}

}  // namespace

std::string JobErrors(const job::JobState& state, plan::PlanStore& plan,
                      const std::string& log_folder) {
  const std::vector<job::DistinctError> errors = state.errors().Top(job::DistinctErrors::kLimit);
  if (errors.empty()) return "No attempt of a mini-batch has failed.\n";
  std::string text = fmt::format(
      "{} failed, with {}{}:\n", CountOf(state.errors().total(), "attempt", "has", "have"),
      CountOf(errors.size(), "distinct error"),
      errors.size() == job::DistinctErrors::kLimit ? " (more are not listed)" : "");
  for (const job::DistinctError& e : errors) {
    const std::string items = ItemsOfMiniBatch(state, plan, e.batch);
    text += fmt::format(
        "\n{} x {}: {}\n  first in mini-batch {}{}, node {}, process{:03}{}\n", e.count,
        Printable(e.kind, 100), Printable(e.message, kMessageBytes), e.batch,
        items.empty() ? "" : fmt::format(" ({})", Printable(items, kMessageBytes)), e.node,
        e.process,
        e.log.empty() ? "" : fmt::format(", see {}/{}", log_folder, Printable(e.log, 300)));
  }
  return text;
}

std::string JobResult(const job::JobState& state, const job::FailureRules& rules,
                      plan::PlanStore& plan, const std::string& log_folder) {
  std::string text;
  if (const auto& verdict = state.verdict()) {
    text += fmt::format("{}: {}: {}\n",
                        verdict->outcome == job::Outcome::kSucceeded ? "Succeeded" : "Failed",
                        verdict->reason, Printable(verdict->message, kMessageBytes));
  } else {
    text += "Unfinished: the job has no verdict yet\n";
  }
  const job::JobCounts& counts = state.counts();
  text += fmt::format("\nMini-batches: {} succeeded, {} failed, of {}{}\n", counts.succeeded,
                      counts.failed, state.plan_ended() ? "" : "at least ", counts.planned);
  text += "Items: " + job::ItemsText(counts, job::CountLosses(counts, rules)) + "\n";
  if (const auto& published = state.published()) {
    const char* const line = published->path.ends_with(output::kSideListName) ? "side file" : "row";
    text += fmt::format("Output: {} ({}, {})\n", published->path, CountOf(published->rows, line),
                        CountOf(published->bytes, "byte"));
  }
  return text + "\n" + JobErrors(state, plan, log_folder);
}

std::string LogReadme() {
  return "What lies where below this folder. <node> is the index of a node, <process> the name of "
         "a\n"
         "worker process, such as process000; a name is never used twice.\n"
         "\n"
         "job_result.txt                             start here: the result, and the root cause of "
         "a failure\n"
         "report.html                                the run in pictures, with advice: open it in "
         "a "
         "browser\n"
         "failures.jsonl                             the items that failed, one a line\n"
         "dead-letter.jsonl                          with isolateFailures: the items that failed\n"
         "job_error.txt                              the distinct errors with their counts\n"
         "job_progress_overview.<yyyymmdd>.txt       progress over time, a file each day (UTC)\n"
         "user/error.txt                             the same as job_error.txt\n"
         "user/error/<node>/<process>.txt            tracebacks from loading and running the "
         "script\n"
         "user/entry_script_log/<node>/<process>.log.txt   what the script logs with "
         "EntryScript().logger\n"
         "user/stdout/<node>/<process>.stdout.txt    what the script prints, and Python's logging\n"
         "user/stderr/<node>/<process>.stderr.txt    what the script writes to stderr\n"
         "user/files/<node>/                         other files that the script put into ./logs\n"
         "user/metrics.jsonl                         what scripts log with run.log\n"
         "sys/job_report/processed_mini-batches.csv  every attempt: times, counts, errors; sums by "
         "node and process beside\n"
         "sys/master_role.txt                        the coordinator's own log\n"
         "sys/node/<node>/_main.txt                  the agent's own log\n"
         "previous/<time>/                           the same of a run that was started over\n";
}

std::string OverviewName(WallTime now) {
  const std::string date = Rfc3339(now);
  return fmt::format("job_progress_overview.{}{}{}.txt", date.substr(0, 4), date.substr(5, 2),
                     date.substr(8, 2));
}

std::string OverviewLine(const Coordinator& coordinator, Duration elapsed, WallTime now) {
  const job::JobState& state = coordinator.state();
  const job::JobCounts& counts = state.counts();
  const uint64_t settled = counts.succeeded + counts.failed;
  std::string line = Rfc3339(now) + " ";
  if (!state.plan_ended()) {
    line += fmt::format("Scheduling: {} mini batches with {} items so far. ", counts.planned,
                        counts.items_planned);
  } else {
    line += fmt::format("Scheduling finished: {} mini batches with {} items. ", counts.planned,
                        counts.items_planned);
  }
  const std::string end = EndOf(coordinator);
  if (settled == 0) return line + "No mini batch has been processed yet." + end + "\n";
  line += fmt::format("Processed {} of {}{} mini batches in {}, {} failed.", settled,
                      state.plan_ended() ? "" : "at least ", counts.planned, ClockText(elapsed),
                      counts.failed);
  const std::optional<Duration> left = TimeLeft(coordinator);
  if (left && end.empty()) line += fmt::format(" Estimated remaining time {}.", ClockText(*left));
  return line + end + "\n";
}

Status WriteReports(const job::JobState& state, const job::FailureRules& rules,
                    plan::PlanStore& plan, const LogFolder& folder) {
  const std::string errors = JobErrors(state, plan, folder.path());
  const std::pair<const char*, std::string> reports[] = {
      {"job_result.txt", JobResult(state, rules, plan, folder.path())},
      {"job_error.txt", errors},
      {"user/error.txt", errors},
      {"readme.txt", LogReadme()},
  };
  Status first;
  for (const auto& [name, text] : reports) {
    Status written = folder.Publish(name, text);
    if (first.ok()) first = std::move(written);
  }
  // The resources' other name, where the volume knows links.
  if (!folder.List("perf").empty()) folder.Link("../perf", "sys/perf");
  return first;
}

}  // namespace parallelrun::coordinator
