#include "agent/core/overdue.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

namespace parallelrun::agent {
namespace {

uint64_t Nanoseconds(Duration time) { return static_cast<uint64_t>(time.count()) * 1000; }

}  // namespace

std::optional<Overdue> OverdueAtWork(uint32_t process, const StatusReading& page,
                                     const Registration& terms, Instant now) {
  const bool running = page.phase == Phase::kRun;
  const Duration limit = running ? terms.run_timeout : terms.overhead_timeout;
  const Duration elapsed = now - page.since;
  if (elapsed <= limit) return std::nullopt;
  if (running) {
    return Overdue{
        page.sequence, Nanoseconds(elapsed), job::Cause::kRunTimeout,
        fmt::format("run() took longer than {} (runInvocationTimeoutSeconds); {} was killed",
                    HumanDuration(limit), ProcessName(process))};
  }
  return Overdue{
      page.sequence, 0, job::Cause::kOverheadTimeout,
      fmt::format("{} took longer than {} (taskOverheadTimeoutSeconds); {} was killed",
                  page.phase == Phase::kLoading ? "loading the mini-batch"
                                                : "turning what run() returned into rows",
                  HumanDuration(limit), ProcessName(process))};
}

std::optional<Overdue> OverdueInFlight(uint32_t process, uint64_t sequence, Instant given,
                                       const Registration& terms, Instant now) {
  if (now - given <= terms.run_timeout) return std::nullopt;
  return Overdue{
      sequence, Nanoseconds(now - given), job::Cause::kRunTimeout,
      fmt::format("no result came within {} (runInvocationTimeoutSeconds) of handing the "
                  "mini-batch to the asynchronous script; {} was killed",
                  HumanDuration(terms.run_timeout), ProcessName(process))};
}

std::optional<Overdue> OverdueToBegin(const Holding& holding, const StatusReading& page,
                                      const Registration& terms, Instant now) {
  if (holding.count == 0) return std::nullopt;
  // From what happened last: the hand-out, the answer before, or the page's own time.
  const Instant since = std::max({holding.given, holding.busy, page.since});
  if (now - since <= terms.overhead_timeout) return std::nullopt;
  return Overdue{
      0, 0, job::Cause::kProcessEnded,
      fmt::format("{} was killed: it held {} mini-batches and began with none of them within {} "
                  "(taskOverheadTimeoutSeconds). They run again, without a failed attempt. Most "
                  "likely a thread that {} left behind keeps the interpreter, or something "
                  "stopped the process",
                  ProcessName(holding.process), holding.count,
                  HumanDuration(terms.overhead_timeout), holding.answered ? "run()" : "init()")};
}

}  // namespace parallelrun::agent
