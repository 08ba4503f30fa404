#include "coordinator/server.h"

#include <spdlog/spdlog.h>

#include <csignal>
#include <utility>

#include "base/count_of.h"
#include "base/ready_mark.h"
#include "base/suspension.h"
#include "coordinator/access.h"
#include "coordinator/log_tree/reports.h"
#include "coordinator/progress.h"
#include "plan/input_store.h"
#include "store/object_stores.h"

namespace parallelrun::coordinator {
namespace {

constexpr Duration kTick = milliseconds(200);
constexpr Duration kOverviewInterval = seconds(10);
constexpr Duration kRefusalsInterval = seconds(1);

RunEnd::Options OptionsOfEnd(const ServerOptions& options) {
  RunEnd::Options end;
  end.publishes = options.sink != nullptr;
  end.sends_logs = options.log_sender != nullptr;
  end.output_folder = options.output_folder;
  end.state_folder = options.state_folder;
  end.leave_limit = options.leave_limit;
  end.ownerless_limit = options.ownerless_limit;
  return end;
}

// Makes them where the job wants some.
ObjectUrls* UrlsOf(std::optional<ObjectUrls>& urls, const ServerOptions& options, EventLoop& loop,
                   const Clock& clock) {
  if (options.signed_stores.empty()) return nullptr;
  const auto open = [life = options.url_life](const store::Wished& wished, std::stop_token stop) {
    return store::OpenUrlSigner(wished, std::move(stop), life);
  };
  return &urls.emplace(options.signed_stores, options.side_inputs, loop, clock, open);
}

// Likewise.
SideUploads* UploadsOf(std::optional<SideUploads>& uploads, const ServerOptions& options,
                       const ledger::Ledger& ledger, EventLoop& loop) {
  const auto& staged = options.publish.staged;
  if (!staged || !staged->stored) return nullptr;
  return &uploads.emplace(
      SideUploads::Options{
          *staged->stored, {ledger.run_id(), options.generation}, ledger.epoch(), options.url_life},
      loop);
}

}  // namespace

CoordinatorServer::CoordinatorServer(ServerOptions options, Files& files, ledger::Ledger& ledger,
                                     job::JobState& state, const LogFolder& folder, LogWriter& logs)
    : options_(std::move(options)),
      ledger_(ledger),
      state_(state),
      logs_(logs),
      metrics_(logs),
      chunks_([this](const job::Place& place) { return ledger_.Read(place); },
              [this] { loop_.Post([this] { OnPlanRead(); }); }),
      plan_(chunks_, options_.inputs),
      coordinator_(options_.coordinator, ledger, plan_, state, clock_.Now()),
      end_(OptionsOfEnd(options_), clock_.Now()),
      names_(state, plan_, ledger, loop_),
      store_waits_(options_.stores),
      begins_(state.counts().succeeded + state.counts().failed + state.errors().total() == 0),
      calls_(
          {ledger.run_id(), ledger.epoch(), options_.coordinator, options_.agent_job,
           UrlsOf(urls_, options_, loop_, clock_),
           UploadsOf(side_uploads_, options_, ledger, loop_)},
          coordinator_, logs, loop_, clock_, [this] { return Progress(); },
          [this](uint64_t after) {
            return FailureLines(coordinator_, plan_, ledger_.epoch(), after);
          }),
      started_(clock_.WallNow()),
      planning_({ledger, state, coordinator_, loop_, clock_}, options_.inputs,
                plan::InputStores(files, options_.forbidden, options_.stores),
                [this] { AfterEvent(); }),
      flusher_(ledger, loop_, [this](const Result<uint64_t>& flushed) { OnFlushed(flushed); }),
      end_work_(
          {options_, files, ledger, state, coordinator_.rules(), folder, loop_, clock_, logs}),
      looker_(
          clock_, [this] { return ledger_.CheckNewest(); },
          [this](Instant begun, const Status& newest) {
            loop_.Post([this, begun, newest] { OnLooked(begun, newest); });
          }) {
  if (!options_.page) return;
  page_source_.emplace(PageSource::Of{state_, coordinator_, names_, begins_ ? &waits_ : nullptr,
                                      [this] { return WaitsForStores(); }, folder.path(), clock_});
  logs_shown_.emplace(loop_, folder);
  page_.emplace(
      ledger_.epoch(), [this] { return page_source_->Now(); },
      [this](const std::shared_ptr<HttpExchange>& exchange) { logs_shown_->Handle(exchange); });
}

CoordinatorServer::~CoordinatorServer() {
  (void)EndThreads(Duration());  // the parts wait for theirs when they go
}

bool CoordinatorServer::EndThreads(Duration limit) {
  planning_.Stop();
  if (options_.log_sender) options_.log_sender->Stop();
  bool ended = looker_.Finish(limit);
  const auto left = [&] { return ended ? limit : Duration(); };
  ended = chunks_.Finish(left()) && ended;
  ended = planning_.Finish(left()) && ended;
  ended = flusher_.Finish(left()) && ended;
  ended = (!logs_shown_ || logs_shown_->Finish(left())) && ended;
  ended = names_.Finish(left()) && ended;
  ended = (!urls_ || urls_->Finish(left())) && ended;
  ended = (!side_uploads_ || side_uploads_->Finish(left())) && ended;
  ended = (!options_.log_sender || options_.log_sender->Finish(left())) && ended;
  return end_work_.Finish(left()) && ended;
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
  const auto hand_over = [this] {
    end_.HandOver();
    AfterEvent();
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
  if (options_.log_sender) {
    options_.log_sender->Start([this](const std::string& wrong) {
      loop_.Post([this, wrong] {
        Warn(
            fmt::format("logs cannot be written to their store, and the job goes on without that: "
                        "{}. They wait in {}",
                        wrong, end_work_.log_folder()));
      });
    });
  }
  loop_.Post([this] { Tick(); });
  loop_.Run();
  if (end_.exit() == CoordinatorExit::kCannotStart) return Error{Code::kNotFound, end_.because()};
  return end_.exit();
}

// --- what has happened

void CoordinatorServer::OnFlushed(const Result<uint64_t>& flushed) {
  if (flushed.ok()) {
    coordinator_.Unpause();
    coordinator_.OnDurable(Now());
    planning_.Durable();
  } else {
    if (flushed.error().code == Code::kNoSpace && coordinator_.paused().empty()) {
      spdlog::error("paused: {}; make room there, and the job goes on by itself",
                    flushed.error().message);
    }
    end_.FlushFailed(flushed.error(), Now());
  }
  AfterEvent();
}

void CoordinatorServer::OnPublished(const Result<output::Publication>& published) {
  if (published.ok()) {
    const job::Published& output = published->published;
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
    coordinator_.OnPublished(output, Now());
  }
  end_.Published(published.ok() ? Status() : published.error(), Now());
  AfterEvent();
}

void CoordinatorServer::OnLooked(Instant begun, const Status& newest) {
  coordinator_.OnLooked(begun, newest, Now());
  AfterEvent();
}

void CoordinatorServer::OnPlanRead() {
  coordinator_.OnPlanRead(Now());
  AfterEvent();
}

void CoordinatorServer::Tick() {
  if (!end_.ending()) Observe();
  AfterEvent();
  if (!end_.left()) loop_.After(kTick, [this] { Tick(); });
}

void CoordinatorServer::Observe() {
  coordinator_.Tick(Now());
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
}

// --- what is to be done

void CoordinatorServer::AfterEvent() {
  metrics_.Add(coordinator_.told().TakeMetrics());
  end_.Heard(calls_.heard_at());
  for (const RunEnd::Do step : end_.Next(coordinator_.FactsOfEnd(Now()), Now())) Do(step);
}

void CoordinatorServer::Do(RunEnd::Do step) {
  switch (step) {
    case RunEnd::Do::kLook:
      coordinator_.LookBegins();
      looker_.Ask();
      break;
    case RunEnd::Do::kPause: coordinator_.Pause(end_.no_room()); break;
    case RunEnd::Do::kFlush: flusher_.Flush(Now()); break;
    case RunEnd::Do::kPublish:
      end_work_.Publish([this](const auto& published) { OnPublished(published); });
      break;
    case RunEnd::Do::kLookAtOutput:
      end_work_.LookAtOutput([this](const Result<bool>& there) {
        end_.OutputFolderSeen(there);
        AfterEvent();
      });
      break;
    case RunEnd::Do::kNothingToPublish:
      coordinator_.OnNothingToPublish();
      AfterEvent();
      break;
    case RunEnd::Do::kNameLast:
      names_.NameLast(coordinator_.rules(), [this] {
        end_.LastNamed();
        AfterEvent();
      });
      break;
    case RunEnd::Do::kStop: Stop(); break;
    case RunEnd::Do::kWriteReports:
    case RunEnd::Do::kNameResults:
    case RunEnd::Do::kRemoveToken:
    case RunEnd::Do::kGiveBack:
    case RunEnd::Do::kSendLogs:
      // The loop observes waits until it ends, so they come as they are now.
      end_work_.Take(step, begins_ ? std::optional(waits_.times()) : std::nullopt,
                     [this, step](const std::string& wrong) {
                       if (!wrong.empty()) Warn(wrong);
                       end_.Done(step);
                       AfterEvent();
                     });
      break;
    case RunEnd::Do::kLeave: Leave(); break;
  }
}

void CoordinatorServer::Stop() {
  const auto level = end_.exit() == CoordinatorExit::kDrained      ? spdlog::level::info
                     : end_.exit() == CoordinatorExit::kSuperseded ? spdlog::level::warn
                                                                   : spdlog::level::err;
  if (!end_.over()) spdlog::log(level, "this epoch ends: {}", end_.because());
  planning_.Stop();
  const std::string stray = calls_.stray().Words(!state_.stages_side_files());
  if (!stray.empty()) Warn(stray);
  WriteOverview();
  LogRefusals();
}

void CoordinatorServer::Leave() {
  // Then nobody answers any more, and who supervises this process ends it.
  if (end_.hung() == RunEnd::Do::kWriteReports) {
    Warn(fmt::format("the reports of the job are not complete: does the volume of {} hang?",
                     end_work_.log_folder()));
  } else if (end_.hung() == RunEnd::Do::kSendLogs) {
    Warn(end_work_.NotSent("there was no more time for it"));
  } else if (end_.hung()) {
    spdlog::error("{} could not be left in order: does its volume hang?", options_.output_folder);
  }
  coordinator_.Close({Code::kUnavailable, "the coordinator ends"});
  if (page_) page_->End();
  http_->Drain(seconds(2), [this] { loop_.Stop(); });
}

// --- what is told

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
                       names_.first_lost(), names_.items(), WaitsForStores()},
                      Now());
}

std::string CoordinatorServer::WaitsForStores() const {
  return store_waits_.With(coordinator_.nodes().StoreWaits());
}

void CoordinatorServer::ObserveWaits() {
  store_waits_.Observe(clock_.WallNow());
  Waits::Look look;
  for (const auto& [index, node] : coordinator_.nodes().all()) {
    if (!node.registered) continue;
    look.processes += node.processes;
    if (!node.store_wait.empty()) look.kept_by_stores += node.processes;
  }
  look.leased = coordinator_.running();
  look.ready = coordinator_.pending();
  look.listed = state_.plan_ended();
  look.any_ready = coordinator_.nodes().any_ready();
  // The whole job waits for what is listed next.
  const bool all_wait = !store_waits_.own().empty() && look.ready == 0 && !look.listed;
  if (all_wait) look.kept_by_stores = look.processes;
  look.store = WaitsForStores();
  const bool runs = coordinator_.phase() == Coordinator::Phase::kRunning;
  look.works = runs && coordinator_.WaitsFor().empty();
  // What ends the job ends init() too: the report tells what was so before.
  look.init = runs ? coordinator_.InitText(Now()) : waits_.times().init;
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

}  // namespace parallelrun::coordinator
