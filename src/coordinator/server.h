// CoordinatorServer puts a Coordinator to work: HTTP in front; the ledger's syncs, the listing and
// the end on threads of their own (Flusher, Planning, EndWork). When the epoch ends, and how, is
// RunEnd's to say. One object runs one epoch, on the thread that calls Run; its loop is the only
// thread that touches the Coordinator.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/event_loop.h"
#include "base/http/server.h"
#include "coordinator/coordinator.h"
#include "coordinator/core/run_end.h"
#include "coordinator/end_work.h"
#include "coordinator/flusher.h"
#include "coordinator/http_calls.h"
#include "coordinator/last_words.h"
#include "coordinator/log_tree/log_folder.h"
#include "coordinator/log_tree/log_writer.h"
#include "coordinator/log_tree/metric_log.h"
#include "coordinator/looker.h"
#include "coordinator/named_items.h"
#include "coordinator/object_urls.h"
#include "coordinator/page/live_page.h"
#include "coordinator/page/log_calls.h"
#include "coordinator/page/page_source.h"
#include "coordinator/page/waits.h"
#include "coordinator/planning.h"
#include "coordinator/server_options.h"
#include "coordinator/store_waits.h"
#include "plan/chunk_reader.h"

namespace parallelrun::coordinator {

class CoordinatorServer {
 public:
  // `ledger` has begun and `state` holds its history; all that is passed by reference must outlive
  // the server.
  CoordinatorServer(ServerOptions options, Files& files, ledger::Ledger& ledger,
                    job::JobState& state, const LogFolder& folder, LogWriter& logs);
  // Waits for its threads. Where a volume hangs that may be for ever: ask EndThreads first.
  ~CoordinatorServer();

  // After Run. False: a thread of it does not end, as on a volume that hangs. Then nothing is left
  // but to leave the process.
  bool EndThreads(Duration limit);

  // Serves until the job is over, drained, or superseded. An error is kCannotStart.
  Result<CoordinatorExit> Run();

  // What /v1/progress answers.
  std::string Progress() const;
  // Shown while it runs and at its end.
  void Warn(const std::string& what);
  // Why Run ended early, in words; "" when the job was over.
  const std::string& ended_because() const { return end_.because(); }

 private:
  Status Listen();

  // After every event: does what RunEnd says is to be done now.
  void AfterEvent();
  void Do(RunEnd::Do step);
  void Tick();
  void Observe();
  void OnFlushed(const Result<uint64_t>& flushed);
  void OnPublished(const Result<output::Publication>& published);
  void WriteOverview();
  void LogRefusals();
  void OnPlanRead();
  void OnLooked(Instant begun, const Status& newest);
  void ObserveWaits();
  std::string WaitsForStores() const;
  void Stop();
  void Leave();
  Instant Now() const { return clock_.Now(); }

  ServerOptions options_;
  ledger::Ledger& ledger_;
  job::JobState& state_;
  LogWriter& logs_;
  MetricLog metrics_;
  SystemClock clock_;
  EventLoop loop_;
  plan::ChunkReader chunks_;
  plan::PlanStore plan_;
  Coordinator coordinator_;
  RunEnd end_;
  NamedItems names_;
  Waits waits_;
  StoreWaits store_waits_;
  std::optional<PageSource> page_source_;  // these three only with a page
  std::optional<LogCalls> logs_shown_;
  std::optional<LivePage> page_;
  std::optional<ObjectUrls> urls_;  // of a job whose nodes read by URLs
  // Of one whose side files go to a store.
  std::optional<SideUploads> side_uploads_;
  const bool begins_;  // no attempt of this run is older than this epoch
  HttpCalls calls_;
  WallTime started_;
  const Instant started_at_ = clock_.Now();
  Instant overview_at_;  // when the next line of the overview is due
  Instant refusals_at_;  // when refusals may be told again
  std::unique_ptr<HttpServer> http_;
  std::unique_ptr<HttpServer> metrics_http_;
  std::string late_warning_;  // of options_.warning, what has come since the start
  const uint64_t settled_before_ = state_.counts().succeeded + state_.counts().failed;
  // Each with threads of its own.
  Planning planning_;
  Flusher flusher_;
  EndWork end_work_;
  Looker looker_;
};

}  // namespace parallelrun::coordinator
