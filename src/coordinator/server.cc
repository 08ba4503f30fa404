#include "coordinator/server.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <csignal>

#include "base/ready_mark.h"
#include "coordinator/access.h"
#include "coordinator/item_names.h"
#include "coordinator/log_tree/batch_report.h"
#include "coordinator/log_tree/failed_items.h"
#include "coordinator/log_tree/reports.h"
#include "coordinator/lost_items.h"
#include "coordinator/plan/input_store.h"
#include "coordinator/progress.h"

namespace parallelrun {
namespace {

constexpr Duration kTick = milliseconds(200);
constexpr Duration kOverviewInterval = seconds(10);
constexpr Duration kRefusalsInterval = seconds(1);
constexpr Duration kDiskFullRetry = seconds(1);
constexpr Duration kReportsLimit = std::chrono::hours(1);
constexpr Duration kGiveBackLimit = seconds(30);
constexpr size_t kMostLostNames = 5;

}  // namespace

CoordinatorServer::CoordinatorServer(ServerOptions options, Files& files, Ledger& ledger,
                                     JobState& state, const LogFolder& folder, LogWriter& logs)
    : options_(std::move(options)),
      files_(files),
      ledger_(ledger),
      state_(state),
      folder_(folder),
      logs_(logs),
      metrics_(logs),
      chunks_([this](const Place& place) { return ledger_.Read(place); },
              [this] { loop_.Post([this] { OnPlanRead(); }); }),
      plan_(chunks_, options_.inputs),
      coordinator_(options_.coordinator, ledger, plan_, state, clock_.Now()),
      calls_({ledger.run_id(), ledger.epoch(), options_.coordinator, options_.agent_job},
             coordinator_, logs, loop_, clock_, [this] { return Progress(); }),
      started_(clock_.WallNow()),
      planning_({ledger, state, coordinator_, loop_, clock_}, options_.inputs,
                InputStores(files, options_.forbidden, options_.stores), [this] { AfterEvent(); }),
      flusher_(ledger, loop_, [this](const Result<uint64_t>& flushed) { OnFlushed(flushed); }),
      looker_(
          clock_, [this] { return ledger_.CheckNewest(); },
          [this](Instant begun, const Status& newest) {
            loop_.Post([this, begun, newest] { OnLooked(begun, newest); });
          }) {}

CoordinatorServer::~CoordinatorServer() {
  (void)EndThreads(Duration());  // the parts wait for theirs when they go
  for (Thread* thread : {&publisher_, &namer_, &reporter_}) {
    if (thread->joinable()) thread->join();
  }
}

bool CoordinatorServer::EndThreads(Duration limit) {
  planning_.Stop();
  bool ended = looker_.Finish(limit);
  const auto left = [&] { return ended ? limit : Duration(); };
  ended = chunks_.Finish(left()) && ended;
  ended = planning_.Finish(left()) && ended;
  ended = flusher_.Finish(left()) && ended;
  for (Thread* thread : {&publisher_, &namer_, &reporter_}) {
    ended = (!thread->joinable() || thread->JoinFor(left())) && ended;
  }
  return ended;
}

Status CoordinatorServer::Listen() {
  Result<std::unique_ptr<HttpServer>> http = HttpServer::Start(
      loop_, options_.http,
      [this](const HttpRequest& request) -> std::variant<size_t, HttpResponse> {
        std::variant<size_t, HttpResponse> admitted = Admit(request, options_.key);
        if (!std::holds_alternative<size_t>(admitted)) return admitted;
        std::optional<HttpResponse> refusal = calls_.RefuseEarly(request);
        if (refusal) return std::move(*refusal);
        return admitted;
      },
      [this](const std::shared_ptr<HttpExchange>& exchange) {
        calls_.Handle(exchange);
        AfterEvent();
      });
  if (!http.ok()) return http.error();
  http_ = std::move(*http);
  if (!options_.metrics_http) return {};
  Result<std::unique_ptr<HttpServer>> metrics = HttpServer::Start(
      loop_, *options_.metrics_http,
      [](const HttpRequest&) -> std::variant<size_t, HttpResponse> { return size_t{0}; },
      [this](const std::shared_ptr<HttpExchange>& exchange) {
        if (calls_.HandlePublic(exchange)) return;
        exchange->Respond(ErrorResponse(404, "NotFound", "only /metrics, /healthz and /readyz"));
      });
  if (!metrics.ok()) return metrics.error();
  metrics_http_ = std::move(*metrics);
  return {};
}

Result<CoordinatorExit> CoordinatorServer::Run() {
  if (const Status listening = Listen(); !listening.ok()) return listening.error();
  if (!options_.ready_file.empty() && !MakeReadyMark(options_.ready_file)) {
    spdlog::warn("{} cannot be made: its pod will not be ready", options_.ready_file);
  }
  // Whoever ends this process starts the next epoch, which the agents wait for: they are not
  // drained. A verdict that is durable is still brought to its end.
  const auto hand_over = [this] {
    if (coordinator_.decided()) return;
    End(CoordinatorExit::kDrained, "ended by a signal: the next epoch goes on");
  };
  loop_.OnSignal(SIGTERM, hand_over);
  loop_.OnSignal(SIGINT, hand_over);
  flusher_.Start();
  planning_.Start();
  loop_.Post([this] { Tick(); });
  loop_.Run();
  if (lost_) return *lost_;
  return exit_;
}

// --- ledger

void CoordinatorServer::OnFlushed(const Result<uint64_t>& flushed) {
  if (flushed.ok()) {
    coordinator_.Unpause();
    coordinator_.OnDurable(Now());
    planning_.Durable();
  } else if (flushed.error().code == Code::kNoSpace) {
    if (coordinator_.paused().empty()) {
      spdlog::error("paused: {}; free some space and the job goes on by itself",
                    flushed.error().message);
    }
    coordinator_.Pause(flushed.error().message);
    flusher_.Rest(kDiskFullRetry, [this] { AfterEvent(); });
  } else {
    // Linux forgets dirty pages after a failed sync: what is durable is known only by reading it
    // back, which the next epoch does.
    spdlog::error("the ledger cannot be written, this epoch ends: {}", flushed.error().message);
    return End(CoordinatorExit::kDiskFailed,
               "the ledger cannot be written: " + flushed.error().message);
  }
  AfterEvent();
}

// --- end

void CoordinatorServer::Publish() {
  publishing_ = true;
  if (publisher_.joinable()) publisher_.join();
  if (!options_.sink) {
    publisher_ = Thread("look at output", [this] {
      const Result<bool> there = files_.Exists(options_.output_folder);
      loop_.Post([this, there] { OnOutputFolder(there); });
    });
    return;
  }
  publisher_ = Thread("publish", [this] {
    Result<Publication> published =
        PublishOutput(*options_.sink, ledger_, state_, options_.publish);
    loop_.Post([this, published = std::move(published)] { OnPublished(published); });
  });
}

// What the script wrote there is the result.
void CoordinatorServer::OnOutputFolder(const Result<bool>& there) {
  if (ending_) return;
  if (there.ok() && !*there) {
    return EndFor({Code::kNotFound,
                   fmt::format("the output folder {} is not there any more: it was removed or "
                               "moved while the job ran. Put it back, and continue the run; "
                               "if it is gone, start over with --overwrite",
                               options_.output_folder)});
  }
  coordinator_.OnNothingToPublish();
  AfterEvent();
}

void CoordinatorServer::OnPublished(const Result<Publication>& published) {
  if (published.ok()) {
    const Published& output = published->published;
    PublishedRecord record;
    record.path = output.path;
    record.bytes = output.bytes;
    record.rows = output.rows;
    record.sha256 = output.sha256;
    if (!published->set_aside.empty()) {
      spdlog::warn("{} was not what had been published there, and is {} now", output.path,
                   published->set_aside);
    }
    coordinator_.Unpause();
    coordinator_.OnPublished(record, Now());
    AfterEvent();
  } else if (published.error().code == Code::kStale) {
    spdlog::warn("superseded: {}", published.error().message);
    End(CoordinatorExit::kSuperseded, "superseded: " + published.error().message);
  } else if (published.error().code == Code::kNoSpace) {
    coordinator_.Pause(published.error().message);
    loop_.After(kDiskFullRetry, [this] {
      publishing_ = false;
      AfterEvent();
    });
  } else if (published.error().code == Code::kExists) {
    const std::string why = fmt::format(
        "the output is not published: {}. Every result is kept in {}: resume the job, which "
        "publishes them",
        published.error().message, options_.state_folder);
    spdlog::error("{}", why);
    End(CoordinatorExit::kNotPublished, why);
  } else {
    spdlog::error("the output cannot be written: {}", published.error().message);
    End(CoordinatorExit::kDiskFailed, "the output cannot be written: " + published.error().message);
  }
}

std::string CoordinatorServer::Progress() const {
  return ProgressJson(coordinator_, ledger_.epoch(), started_, metrics_.latest(), options_.warning,
                      planning_.columns(), planning_.left_out(), first_lost_, items_);
}

void CoordinatorServer::OnLooked(Instant begun, const Status& newest) {
  coordinator_.OnLooked(begun, newest, Now());
  AfterEvent();
}

void CoordinatorServer::AfterEvent() {
  metrics_.Add(coordinator_.told().TakeMetrics());
  if (ending_) return;
  if (coordinator_.WantsLook(Now())) {
    coordinator_.LookBegins();
    looker_.Ask();
  }
  if (coordinator_.newest().superseded()) {
    return End(CoordinatorExit::kSuperseded, "superseded by a newer epoch");
  }
  if (!coordinator_.newest().lost().empty())
    return EndFor({Code::kNotFound, coordinator_.newest().lost()});
  flusher_.Flush();
  switch (coordinator_.phase()) {
    case Coordinator::Phase::kFinalizing:
      if (!publishing_) Publish();
      break;
    case Coordinator::Phase::kEnded: {
      if (ended_at_ == Instant()) {
        ended_at_ = Now();
        NameLosses();
      }
      const bool late = Now() - ended_at_ > options_.leave_limit;
      if ((coordinator_.nodes().registered() == 0 && named_) || late) {
        End(state_.verdict()->outcome == Outcome::kSucceeded ? CoordinatorExit::kSucceeded
                                                             : CoordinatorExit::kFailed);
      }
      break;
    }
    case Coordinator::Phase::kDraining:
      if (coordinator_.nodes().registered() == 0 && ledger_.appended() == ledger_.durable()) {
        End(CoordinatorExit::kDrained, "drained by request");
      }
      break;
    default: break;
  }
}

void CoordinatorServer::Tick() {
  coordinator_.Tick(Now());
  if (coordinator_.nodes().registered() > 0) heard_at_ = Now();
  if (Now() - std::max(heard_at_, calls_.heard_at()) > options_.ownerless_limit) {
    const std::string because =
        fmt::format("no node was there and nobody called for {} (ownerlessSeconds)",
                    HumanDuration(options_.ownerless_limit));
    spdlog::warn("this epoch ends: {}", because);
    End(CoordinatorExit::kDrained, because);
  }
  NameErrors();
  if (Now() >= overview_at_) {
    overview_at_ = Now() + kOverviewInterval;
    WriteOverview();
  }
  if (Now() >= refusals_at_) {
    refusals_at_ = Now() + kRefusalsInterval;
    LogRefusals();
  }
  AfterEvent();
  if (!ending_) loop_.After(kTick, [this] { Tick(); });
}

void CoordinatorServer::OnPlanRead() {
  coordinator_.OnPlanRead(Now());
  AfterEvent();
}

// Those that are told. Each name costs a look into the plan, once.
void CoordinatorServer::NameErrors() {
  for (const DistinctError& error : state_.errors().Top(kErrorsTold)) {
    if (!items_.contains(error.batch) && plan_.AtHand(state_, error.batch)) {
      items_[error.batch] = ItemsOfMiniBatch(state_, plan_, error.batch);
    }
  }
}

// What the last words name. On a thread of its own, since it reads the plan, some of it perhaps
// from a volume that hangs; the state does not change any more.
void CoordinatorServer::NameLosses() {
  namer_ = Thread("names", [this] {
    PlanStore plan(ledger_);
    std::map<BatchId, std::string> items;
    for (const DistinctError& error : state_.errors().Top(kErrorsTold)) {
      items[error.batch] = ItemsOfMiniBatch(state_, plan, error.batch);
    }
    std::vector<std::string> lost =
        FirstLostItems(state_, coordinator_.rules(), plan, kMostLostNames);
    loop_.Post([this, items = std::move(items), lost = std::move(lost)]() mutable {
      items_ = std::move(items);
      first_lost_ = std::move(lost);
      named_ = true;
      AfterEvent();
    });
  });
}

// Progress for people who read files: lost lines do no harm, so no sync and no error.
void CoordinatorServer::WriteOverview() {
  const WallTime now = clock_.WallNow();
  logs_.Append(OverviewName(now), OverviewLine(coordinator_, Now() - started_at_, now));
}

void CoordinatorServer::LogRefusals() {
  for (const Refusals::Line& line : coordinator_.told().TakeRefusals()) {
    spdlog::log(line.warns ? spdlog::level::warn : spdlog::level::info, "{}", line.text);
  }
}

// On a thread of its own, since it reads the whole ledger; the state does not change any more.
void CoordinatorServer::WriteLastReports() {
  PlanStore plan(ledger_);  // the other one is the loop's
  const FailureRules& rules = coordinator_.rules();
  for (const Status& written :
       {WriteReports(state_, rules, plan, folder_),
        WriteBatchReports(files_, options_.state_folder, state_, rules, folder_),
        WriteFailedItems(files_, options_.state_folder, state_, rules, plan, folder_,
                         options_.dead_letters)}) {
    if (!written.ok()) spdlog::warn("the reports are not complete: {}", written.error().message);
  }
}

void CoordinatorServer::End(CoordinatorExit exit, const std::string& because) {
  if (ending_) return;
  ending_ = true;
  exit_ = exit;
  ended_because_ = because;
  planning_.Stop();
  WriteOverview();
  LogRefusals();
  const bool over = exit == CoordinatorExit::kSucceeded || exit == CoordinatorExit::kFailed;
  reporter_ = Thread("reports", [this, over] {
    if (over) WriteLastReports();
    GiveBack();
    loop_.Post([this] { Leave(); });
  });
  // Then nobody answers any more, and who supervises this process ends it.
  loop_.After(over ? kReportsLimit : kGiveBackLimit, [this, over] {
    if (left_) return;
    if (over) {
      spdlog::error("the reports are not complete after {}: does the volume of {} hang?",
                    HumanDuration(kReportsLimit), folder_.path());
    } else {
      spdlog::error("{} could not be left in order within {}: does its volume hang?",
                    options_.output_folder, HumanDuration(kGiveBackLimit));
    }
    Leave();
  });
}

// No next epoch could go on either.
void CoordinatorServer::EndFor(Error why) {
  spdlog::error("{}", why.message);
  lost_ = std::move(why);
  End(CoordinatorExit::kCannotStart, lost_->message);
}

// What this epoch holds of the output, which lies on a volume that may hang.
void CoordinatorServer::GiveBack() {
  // A superseded coordinator's token is its successor's business.
  if (exit_ != CoordinatorExit::kSuperseded && !ledger_.token_path().empty()) {
    const Status removed = files_.Remove(ledger_.token_path());
    if (!removed.ok() && removed.error().code != Code::kNotFound) {
      spdlog::warn("{}", removed.error().message);
    }
  }
  // One that goes on with another epoch keeps its output.
  if (exit_ == CoordinatorExit::kSucceeded || exit_ == CoordinatorExit::kFailed ||
      exit_ == CoordinatorExit::kNotPublished) {
    const Status released = ReleaseOutput(files_, options_.held);
    if (!released.ok()) spdlog::warn("{}", released.error().message);
  }
}

void CoordinatorServer::Leave() {
  if (std::exchange(left_, true)) return;
  coordinator_.Close({Code::kUnavailable, "the coordinator ends"});
  http_->Drain(seconds(2), [this] { loop_.Stop(); });
}

}  // namespace parallelrun
