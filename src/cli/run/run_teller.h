// What a local run says: to people on the terminal, to programs as events, each thing once to both.
// It also knows what was heard of the coordinator last. It knows nothing of processes. For one
// thread.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/time.h"
#include "cli/failures_table.h"
#include "cli/run/display.h"
#include "cli/run/event_stream.h"
#include "cli/run/local_job.h"
#include "cli/run/local_run.h"
#include "cli/run/progress_teller.h"
#include "cli/run/run_events.h"

namespace parallelrun::cli {

class RunTeller {
 public:
  // All of them must outlive it. Times are counted from now on.
  RunTeller(const LocalJob& job, const RunRequest& request, const NextCommands& next,
            const Clock& clock);

  // Nothing before it, and End() last. Without events it is not needed.
  void Begin();

  void Say(const std::string& text);
  // What keeps the run from starting or going on.
  void Alert(const std::string& why);
  // What was asked for, in place of a run.
  void Result(const std::string& text);

  void CoordinatorLost();
  void NodeLost(size_t index);
  void NodeWaits(size_t index, const std::string& why);
  void NodeOver(size_t index, const std::string& why);
  // The mini-batches that run are finished; `at_once`: they are not.
  void Stopping(bool at_once);

  // `progress` as docs/coordinator-api.md has it.
  void Progress(nlohmann::json progress);
  void Waiting(const std::string& why);
  void Failure(const FailedLine& failed);
  // While nothing is heard, too.
  void Tick();

  // `last` is what the coordinator said last, if it had time for it.
  void Summarize(const std::optional<nlohmann::json>& last);
  // The same text, for who follows the run from elsewhere.
  std::string SummaryText(const std::optional<nlohmann::json>& last) const;
  void End(int exit, const std::optional<nlohmann::json>& last);

  // What was heard last; none before the first.
  const std::optional<nlohmann::json>& shown() const { return teller_.shown(); }
  // Mini-batches that have succeeded, and that ended their nodes (ProgressTeller).
  uint64_t succeeded() const { return teller_.succeeded(); }
  int64_t lost() const { return teller_.lost(); }
  Duration Elapsed() const { return clock_.Now() - started_; }

 private:
  Leads LeadsOf() const;

  const LocalJob& job_;
  const RunRequest& request_;
  const NextCommands& next_;
  const Clock& clock_;
  const Instant started_;
  Display display_;
  ProgressTeller teller_{display_};
  const std::unique_ptr<EventStream> stream_;  // nullptr: no events are asked for
  RunEvents events_;
  std::string why_;  // the run did not start or go on, where that is no verdict
};

}  // namespace parallelrun::cli
