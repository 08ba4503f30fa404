// EndWork does what RunEnd asks for and disks and stores take their time for: it publishes, writes
// the reports, gives the output back; each in a thread, whose end is told on the loop. A volume
// that hangs while it is published to keeps nobody from giving it back. Belongs to the loop's
// thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/event_loop.h"
#include "base/files.h"
#include "base/thread.h"
#include "base/time.h"
#include "coordinator/core/run_end.h"
#include "coordinator/log_tree/log_folder.h"
#include "coordinator/log_tree/log_writer.h"
#include "coordinator/page/waits.h"
#include "coordinator/server_options.h"
#include "job/job_state.h"
#include "job/losses.h"
#include "ledger/ledger.h"
#include "output/publisher.h"

namespace parallelrun::coordinator {

class EndWork {
 public:
  // All of it outlives this; the state does not change while it publishes, or writes reports.
  struct Of {
    const ServerOptions& options;
    Files& files;
    const ledger::Ledger& ledger;
    const job::JobState& state;
    const job::FailureRules& rules;
    LogFolder folder;
    EventLoop& loop;
    const Clock& clock;
    LogWriter& logs;
  };

  explicit EndWork(Of of) : of_(std::move(of)) {}
  // Waits for its threads. Where a volume hangs that may be for ever: ask Finish first.
  ~EndWork() { Join(); }
  EndWork(const EndWork&) = delete;
  EndWork& operator=(const EndWork&) = delete;

  // kPublish and kLookAtOutput.
  void Publish(std::function<void(const Result<output::Publication>&)> published);
  void LookAtOutput(std::function<void(const Result<bool>&)> seen);
  // kWriteReports, kNameResults, kRemoveToken, kGiveBack or kSendLogs. What of reports and logs is
  // not complete is given on, "": nothing. All else that goes wrong is only logged: nobody could do
  // more about it.
  void Take(RunEnd::Do step, const std::optional<Waits::Times>& waits,
            std::function<void(const std::string& wrong)> done);

  const std::string& log_folder() const { return of_.folder.path(); }
  // Of logs that are to be in a store.
  std::string NotSent(const std::string& why) const;
  // False: a thread needs longer than `limit`.
  bool Finish(Duration limit);

 private:
  std::string Work(RunEnd::Do step, const std::optional<Waits::Times>& waits) const;
  void Join();

  const Of of_;
  Thread publisher_;
  Thread last_;
};

}  // namespace parallelrun::coordinator
