// CoordinatorServer puts a Coordinator to work: HTTP in front, the ledger's syncs and the listing
// on threads of their own (Flusher, Planning), publishing at the end. One object runs one epoch, on
// the thread that calls Run; its loop is the only thread that touches the Coordinator.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "base/http/server.h"
#include "base/thread.h"
#include "coordinator/coordinator.h"
#include "coordinator/flusher.h"
#include "coordinator/http_calls.h"
#include "coordinator/last_words.h"
#include "coordinator/log_tree/log_folder.h"
#include "coordinator/log_tree/log_writer.h"
#include "coordinator/log_tree/metric_log.h"
#include "coordinator/looker.h"
#include "coordinator/named_items.h"
#include "coordinator/page/live_page.h"
#include "coordinator/page/log_calls.h"
#include "coordinator/page/page_source.h"
#include "coordinator/page/waits.h"
#include "coordinator/planning.h"
#include "output/publisher.h"
#include "output/result_manifest.h"
#include "plan/chunk_reader.h"
#include "plan/planner.h"
#include "store/wished.h"

namespace parallelrun::coordinator {

struct ServerOptions {
  CoordinatorLimits coordinator;
  HttpServerOptions http;
  std::optional<HttpServerOptions> metrics_http;  // /metrics and probes, for everybody
  std::string key;                                // of the job; tokens are derived from it
  std::string agent_job;                          // JSON text: `job` of the answer to register
  std::string output_folder;
  std::shared_ptr<output::Sink> sink;               // of the output; none with SummaryOnly
  std::shared_ptr<output::ResultManifest> results;  // of what a script writes itself; or none
  output::PublishOptions publish;
  std::function<Status()> give_back = [] { return Status(); };  // the output, at the end
  bool dead_letters = false;                                    // told of in a file of their own
  std::string warning;  // of what an earlier run is continued with; shown
  std::string state_folder;
  std::string ready_file;  // made once it serves (base/ready_mark.h)
  std::vector<plan::PlanInput> inputs;
  std::map<std::string, store::Wished> stores;  // how each is asked, by name
  std::vector<std::string> forbidden;           // folders that the listing must not meet
  bool page = false;                            // the live page is served
  Duration leave_limit = seconds(30);  // how long nodes may take to upload their logs at the end
  Duration ownerless_limit = std::chrono::hours(24);  // without a node and a call: it ends drained
};

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
  const std::string& ended_because() const { return ended_because_; }

 private:
  Status Listen();

  // After every event: starts what the event made necessary.
  void AfterEvent();
  void Tick();
  void OnFlushed(const Result<uint64_t>& flushed);
  void Publish();
  void OnOutputFolder(const Result<bool>& there);
  void OnPublished(const Result<output::Publication>& published);
  void WriteOverview();
  void LogRefusals();
  void OnPlanRead();
  void OnLooked(Instant begun, const Status& newest);
  void ObserveWaits();
  void NameResults();
  void End(CoordinatorExit exit, const std::string& because = "");
  void EndFor(Error why);
  void GiveBack();
  void Leave();
  Instant Now() const { return clock_.Now(); }

  ServerOptions options_;
  Files& files_;
  ledger::Ledger& ledger_;
  job::JobState& state_;
  const LogFolder folder_;
  LogWriter& logs_;
  MetricLog metrics_;
  SystemClock clock_;
  EventLoop loop_;
  plan::ChunkReader chunks_;
  plan::PlanStore plan_;
  Coordinator coordinator_;
  NamedItems names_;
  Waits waits_;
  std::optional<PageSource> page_source_;  // these three only with a page
  std::optional<LogCalls> logs_shown_;
  std::optional<LivePage> page_;
  const bool begins_;  // no attempt of this run is older than this epoch
  HttpCalls calls_;
  WallTime started_;
  const Instant started_at_ = clock_.Now();
  Instant overview_at_;  // when the next line of the overview is due
  Instant refusals_at_;  // when refusals may be told again
  std::unique_ptr<HttpServer> http_;
  std::unique_ptr<HttpServer> metrics_http_;
  Instant heard_at_ = clock_.Now();  // when a node was last there
  std::string ended_because_;
  std::string late_warning_;   // of options_.warning, what has come since the start
  std::optional<Error> lost_;  // what this epoch cannot do without
  CoordinatorExit exit_ = CoordinatorExit::kDiskFailed;
  bool ending_ = false;
  bool left_ = false;
  Instant ended_at_;
  const uint64_t settled_before_ = state_.counts().succeeded + state_.counts().failed;
  bool publishing_ = false;
  // Each with a thread of its own.
  Planning planning_;
  Flusher flusher_;
  Thread publisher_;
  Thread reporter_;
  Looker looker_;
};

}  // namespace parallelrun::coordinator
