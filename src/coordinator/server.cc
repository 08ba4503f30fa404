#include "coordinator/server.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <csignal>

#include "base/count_of.h"
#include "base/ready_mark.h"
#include "base/suspension.h"
#include "coordinator/access.h"
#include "coordinator/last_reports.h"
#include "coordinator/log_tree/reports.h"
#include "coordinator/progress.h"
#include "ledger/claim.h"
#include "plan/input_store.h"

namespace parallelrun::coordinator {
namespace {

constexpr Duration kTick = milliseconds(200);
constexpr Duration kOverviewInterval = seconds(10);
constexpr Duration kRefusalsInterval = seconds(1);
constexpr Duration kDiskFullRetry = seconds(1);
constexpr Duration kReportsLimit = std::chrono::hours(1);
constexpr Duration kGiveBackLimit = seconds(30);

}  // namespace

CoordinatorServer::CoordinatorServer(ServerOptions options, Files& files, ledger::Ledger& ledger,
                                     job::JobState& state, const LogFolder& folder, LogWriter& logs)
    : options_(std::move(options)),
      files_(files),
      ledger_(ledger),
      state_(state),
      folder_(folder),
      logs_(logs),
      metrics_(logs),
      chunks_([this](const job::Place& place) { return ledger_.Read(place); },
              [this] { loop_.Post([this] { OnPlanRead(); }); }),
      plan_(chunks_, options_.inputs),
      coordinator_(options_.coordinator, ledger, plan_, state, clock_.Now()),
      names_(state, plan_, ledger, loop_),
      begins_(state.counts().succeeded + state.counts().failed + state.errors().total() == 0),
      calls_(
          {ledger.run_id(), ledger.epoch(), options_.coordinator, options_.agent_job}, coordinator_,
          logs, loop_, clock_, [this] { return Progress(); },
          [this](uint64_t after) {
            return FailureLines(coordinator_, plan_, ledger_.epoch(), after);
          }),
      started_(clock_.WallNow()),
      planning_({ledger, state, coordinator_, loop_, clock_}, options_.inputs,
                plan::InputStores(files, options_.forbidden, options_.stores),
                [this] { AfterEvent(); }),
      flusher_(ledger, loop_, [this](const Result<uint64_t>& flushed) { OnFlushed(flushed); }),
      looker_(
          clock_, [this] { return ledger_.CheckNewest(); },
          [this](Instant begun, const Status& newest) {
            loop_.Post([this, begun, newest] { OnLooked(begun, newest); });
          }) {
  if (!options_.page) return;
  page_source_.emplace(PageSource::Of{state_, coordinator_, names_, begins_ ? &waits_ : nullptr,
                                      folder_.path(), clock_});
  logs_shown_.emplace(loop_, folder_);
  page_.emplace(
      ledger_.epoch(), [this] { return page_source_->Now(); },
      [this](const std::shared_ptr<HttpExchange>& exchange) { logs_shown_->Handle(exchange); });
}

CoordinatorServer::~CoordinatorServer() {
  (void)EndThreads(Duration());  // the parts wait for theirs when they go
  for (Thread* thread : {&publisher_, &reporter_}) {
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
  ended = (!logs_shown_ || logs_shown_->Finish(left())) && ended;
  ended = names_.Finish(left()) && ended;
  for (Thread* thread : {&publisher_, &reporter_}) {
    ended = (!thread->joinable() || thread->JoinFor(left())) && ended;
  }
  return ended;
}

Status CoordinatorServer::Listen() {
  Result<std::unique_ptr<HttpServer>> http = HttpServer::Start(
      loop_, options_.http,
      [this](const HttpRequest& request) -> std::variant<size_t, HttpResponse> {
        if (page_) {
          if (auto of_page = page_->Admit(request)) return std::move(*of_page);
        }
        std::variant<size_t, HttpResponse> admitted = Admit(request, options_.key);
        if (!std::holds_alternative<size_t>(admitted)) return admitted;
        std::optional<HttpResponse> refusal = calls_.RefuseEarly(request);
        if (refusal) return std::move(*refusal);
        return admitted;
      },
      [this](const std::shared_ptr<HttpExchange>& exchange) {
        if (page_ && page_->Handle(exchange, Now())) return;
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
  // Ctrl-Z of the command that has started it. The nodes do the same, so nothing expires.
  loop_.OnSignal(SIGTSTP, [] {
    suspension::StopTime();
    suspension::AwaitContinue();
    suspension::ResumeTime();
  });
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
      spdlog::error("paused: {}; make room there, and the job goes on by itself",
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
    Result<output::Publication> published =
        output::PublishOutput(*options_.sink, ledger_, state_, options_.publish);
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

void CoordinatorServer::OnPublished(const Result<output::Publication>& published) {
  if (published.ok()) {
    const job::Published& output = published->published;
    job::PublishedRecord record;
    record.path = output.path;
    record.bytes = output.bytes;
    record.rows = output.rows;
    record.sha256 = output.sha256;
    if (!published->set_aside.empty()) {
      spdlog::warn("{} was not what had been published there, and is {} now", output.path,
                   published->set_aside);
    }
    if (published->lines > output.rows) {
      Warn(fmt::format(
          "the {} of the output are {}: some hold line breaks, so a line is no row. With "
          "output.format: jsonl (--output FILE.jsonl) each row is one line",
          CountOf(output.rows, "row"), CountOf(published->lines, "line")));
    }
    coordinator_.Unpause();
    coordinator_.OnPublished(record, Now());
    AfterEvent();
  } else if (published.error().code == Code::kStale) {
    spdlog::warn("superseded: {}", published.error().message);
    End(CoordinatorExit::kSuperseded, "superseded: " + published.error().message);
  } else if (published.error().code == Code::kNoSpace ||
             published.error().code == Code::kUnavailable) {
    coordinator_.Pause(published.error().message);
    loop_.After(kDiskFullRetry, [this] {
      publishing_ = false;
      AfterEvent();
    });
  } else if (published.error().code == Code::kExists || published.error().code == Code::kInvalid) {
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

void CoordinatorServer::Warn(const std::string& what) {
  spdlog::warn("{}", what);
  for (std::string* const text : {&options_.warning, &late_warning_}) {
    *text += (text->empty() ? "" : ". Also: ") + what;
  }
}

std::string CoordinatorServer::Progress() const {
  return ProgressJson(coordinator_,
                      {ledger_.epoch(), started_, settled_before_, options_.warning, late_warning_,
                       metrics_.latest(), planning_.columns(), planning_.left_out(),
                       names_.first_lost(), names_.items()},
                      Now());
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
        names_.NameLast(coordinator_.rules(), [this] { AfterEvent(); });
      }
      const bool late = Now() - ended_at_ > options_.leave_limit;
      if ((coordinator_.nodes().registered() == 0 && names_.last_named()) || late) {
        End(state_.verdict()->outcome == job::Outcome::kSucceeded ? CoordinatorExit::kSucceeded
                                                                  : CoordinatorExit::kFailed);
      }
      break;
    }
    case Coordinator::Phase::kDraining:
      if (coordinator_.nodes().registered() > 0) break;
      if (ledger_.appended() == ledger_.durable()) {
        End(CoordinatorExit::kDrained, "drained by request");
      } else if (!coordinator_.paused().empty()) {
        // Nobody waits for what does not fit; the next epoch finds what is durable.
        End(CoordinatorExit::kDrained,
            "drained by request, without what there is no room for: " + coordinator_.paused());
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
  const std::optional<job::Held> slowest = coordinator_.availability().Slowest();
  names_.Name(slowest ? std::optional(slowest->id) : std::nullopt);
  ObserveWaits();
  if (page_) page_->Tick(Now());
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

void CoordinatorServer::ObserveWaits() {
  Waits::Look look;
  for (const auto& [index, node] : coordinator_.nodes().all()) {
    if (node.registered) look.processes += node.processes;
  }
  look.leased = coordinator_.running();
  look.ready = coordinator_.pending();
  look.listed = state_.plan_ended();
  look.any_ready = coordinator_.nodes().any_ready();
  look.works =
      coordinator_.phase() == Coordinator::Phase::kRunning && coordinator_.WaitsFor().empty();
  waits_.Observe(look, Now());
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

// What the script has written itself, so that a run that starts over can remove it.
void CoordinatorServer::NameResults() {
  const Status named = options_.results ? options_.results->End() : Status();
  if (!named.ok()) {
    spdlog::warn("what this run has left in {} cannot be named: {}", options_.output_folder,
                 named.error().message);
  }
}

void CoordinatorServer::End(CoordinatorExit exit, const std::string& because) {
  if (ending_) return;
  ending_ = true;
  exit_ = exit;
  ended_because_ = because;
  planning_.Stop();
  if (const std::string stray = calls_.stray().Words(); !stray.empty()) Warn(stray);
  WriteOverview();
  LogRefusals();
  const bool over = exit == CoordinatorExit::kSucceeded || exit == CoordinatorExit::kFailed;
  // Nobody of the run writes any more. Who only hands over to the next epoch leaves nodes at work.
  const bool left = over || (coordinator_.phase() == Coordinator::Phase::kDraining &&
                             coordinator_.nodes().registered() == 0);
  const std::optional<Waits::Times> waits = begins_ ? std::optional(waits_.times()) : std::nullopt;
  // The loop observes waits until it ends, so they come as they are now.
  reporter_ = Thread("reports", [this, over, left, waits] {
    std::string wrong;
    if (over) {
      wrong =
          WriteLastReports({state_, coordinator_.rules(), ledger_, waits, options_.dead_letters},
                           files_, options_.state_folder, folder_, clock_.WallNow());
    }
    if (left) NameResults();
    GiveBack();
    loop_.Post([this, wrong] {
      if (!wrong.empty()) Warn(wrong);
      Leave();
    });
  });
  // Then nobody answers any more, and who supervises this process ends it.
  loop_.After(over ? kReportsLimit : kGiveBackLimit, [this, over] {
    if (left_) return;
    if (over) {
      Warn(fmt::format(
          "the reports of the job are not complete after {}: does the volume of {} hang?",
          HumanDuration(kReportsLimit), folder_.path()));
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
    const Status removed = ledger::RemoveToken(files_, ledger_.token_path());
    if (!removed.ok()) {
      spdlog::warn("{}", removed.error().message);
    }
  }
  // One that goes on with another epoch keeps its output.
  if (exit_ == CoordinatorExit::kSucceeded || exit_ == CoordinatorExit::kFailed ||
      exit_ == CoordinatorExit::kNotPublished) {
    const Status released = options_.give_back();
    if (!released.ok()) spdlog::warn("{}", released.error().message);
  }
}

void CoordinatorServer::Leave() {
  if (std::exchange(left_, true)) return;
  coordinator_.Close({Code::kUnavailable, "the coordinator ends"});
  if (page_) page_->End();
  http_->Drain(seconds(2), [this] { loop_.Stop(); });
}

}  // namespace parallelrun::coordinator
