#include "cli/run/local_run.h"

#include <signal.h>
#include <spdlog/fmt/fmt.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/escape.h"
#include "base/event_loop.h"
#include "base/json.h"
#include "base/suspension.h"
#include "cli/run/dry_run.h"
#include "cli/run/early_signals.h"
#include "cli/run/hangups.h"
#include "cli/run/preparation.h"
#include "cli/run/progress_poller.h"
#include "cli/run/run_teller.h"
#include "cli/run/supervisor.h"
#include "cli/runs/control_socket.h"
#include "cli/runs/detach.h"
#include "cli/runs/kept_code.h"
#include "cli/runs/run_record.h"

namespace parallelrun::cli {
namespace {

using coordinator::CoordinatorExit;
using nlohmann::json;

constexpr Duration kTick = seconds(1);
// A full disk holds up a stop for so long.
constexpr Duration kFullDiskLimit = seconds(10);

// From the words of the command to its exit status: what signals and other commands ask, and what
// the end of a process means.
class LocalRun {
 public:
  LocalRun(const LocalJob& job, const RunRequest& request, const NextCommands& next)
      : job_(job),
        request_(request),
        teller_(job, request, next, clock_),
        prepared_(job, request) {}

  int Run() {
    // Who reads what is said may go away before the job is over.
    signal(SIGPIPE, SIG_IGN);
    suspension::HoldContinue();
    if (request_.dry_run) return DryRun();
    teller_.Begin();
    const Status prepared = Prepare();
    for (const int signo : early_.heard()) {
      loop_.OnSignal(signo, [this, signo] { Interrupt(signo); });
    }
    // Only now nothing comes any more that would not be heard by the loop.
    if (early_.came() != 0) return StoppedEarly();
    if (!prepared.ok()) return CannotStart(prepared.error());
    if (signal(SIGTSTP, SIG_DFL) == SIG_IGN) {
      signal(SIGTSTP, SIG_IGN);  // who started it wants no stops
    } else {
      loop_.OnSignal(SIGTSTP, [this] { Suspend(); });
    }
    // Without it the run cannot be found by other commands, and goes on all the same.
    if (const Status open = control_.Open(job_.layout.state_folder); !open.ok()) {
      teller_.Say("parallelrun ps will not see this run: " + open.error().message);
    }
    if (request_.ends_with_stdin) WatchStdin();
    loop_.Post([this] {
      if (const Status started = StartAll(); !started.ok()) {
        GiveUp(started.error().message, kExitUsage);
      }
    });
    loop_.Run();
    return exit_;
  }

 private:
  // --- the start

  int CannotStart(const Error& error) {
    teller_.Alert(error.message);
    exit_ = kExitUsage;
    teller_.End(exit_, std::nullopt);
    return exit_;
  }

  // Whatever went wrong by it, it is the signal that is told.
  int StoppedEarly() {
    teller_.Alert("stopped before anything was started; the same command begins again");
    exit_ = kExitSignal + early_.came();
    teller_.End(exit_, std::nullopt);
    return exit_;
  }

  Status Prepare() {
    // Orphans of a guardian that was killed come to us, to be ended with the rest.
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    // Worker processes of the same user cannot look into this one, where the job's key is.
    prctl(PR_SET_DUMPABLE, 0);
    if (const Status checked = prepared_.Check(early_.fd()); !checked.ok()) return checked;
    if (early_.came() != 0) return {};
    if (const Status locked = prepared_.Lock(); !locked.ok()) return locked;
    Result<std::unique_ptr<rest_client::RestClient>> client = prepared_.Client();
    if (!client.ok()) return client.error();
    client_ = std::move(*client);
    Supervisor::Calls calls;
    calls.coordinator_ended = [this](CoordinatorExit how) { return CoordinatorEnded(how); };
    calls.give_up = [this](const std::string& why) { GiveUp(why); };
    calls.gone = [this] { End(); };
    processes_ = std::make_unique<Supervisor>(loop_, clock_, job_, prepared_.launcher(), teller_,
                                              std::move(calls));
    return {};
  }

  int DryRun() {
    const Status checked = prepared_.Check(early_.fd());
    if (early_.came() != 0) return StoppedEarly();
    if (!checked.ok()) return CannotStart(checked.error());
    for (const std::string& note : prepared_.Notes()) teller_.Say(note);
    const Result<PlanSize> plan = MeasurePlan(job_, prepared_.selection());
    if (early_.came() != 0) return StoppedEarly();
    if (!plan.ok()) return CannotStart(plan.error());
    teller_.Result(DryRunText(job_, *plan));
    return kExitOk;
  }

  Status StartAll() {
    for (const std::string& note : prepared_.Notes()) teller_.Say(note);
    if (request_.page) teller_.Say("page: " + prepared_.launcher().PageUrl());
    if (const Status started = processes_->Start(); !started.ok()) return started;
    ProgressPoller::Hears hears;
    hears.progress = [this](json progress) {
      loop_.Post([this, progress = std::move(progress)] { Show(progress); });
    };
    hears.wait = [this](std::string why) {
      loop_.Post([this, why = std::move(why)] {
        if (!stopping_) teller_.Waiting(why);
      });
    };
    hears.failure = [this](FailedLine failed) {
      loop_.Post([this, failed = std::move(failed)] {
        if (!stopping_) teller_.Failure(failed);
      });
    };
    poller_ = std::make_unique<ProgressPoller>(std::move(client_), std::move(hears));
    Tick();
    if (draining_) poller_->Drain();  // interrupted before there was one
    return {};
  }

  // --- while it runs

  void Tick() {
    teller_.Tick();
    if (!stopping_) loop_.After(kTick, [this] { Tick(); });
  }

  void Show(json progress) {
    Record();
    if (stopping_) return;
    teller_.Progress(std::move(progress));
    if (control_.followed()) control_.Tell({{"progress", Shown()}});
    EndIfFull();
  }

  // Once the coordinator has taken the run: of one that it refused, what is there is of the run
  // before. Who comes later does without it, if it cannot be written.
  void Record() {
    if (recorded_) return;
    recorded_ = true;
    std::error_code unknown;
    const Status written =
        WriteRunRecord(job_.layout.state_folder,
                       {request_.command, std::filesystem::current_path(unknown), CodeForOthers(),
                        request_.quick.has_value(), job_.job, job_.volumes});
    if (!written.ok()) teller_.Say(written.error().message);
    const Status begun = detached_.Begun(job_.layout.state_folder);
    if (!begun.ok()) teller_.Say(begun.error().message);
    if (!begun.ok() && begun.error().code == Code::kUnavailable) Interrupt(SIGTERM);
  }

  std::string CodeForOthers() {
    std::error_code ignored;
    const std::string kept = KeptCodeFolder(job_.layout.state_folder);
    // What was kept is run again from there.
    const bool there = std::filesystem::equivalent(job_.code_folder, kept, ignored);
    if (!request_.keep_code || there) return job_.code_folder;
    const Status done = KeepCode(prepared_.launcher().CodeCopy(), job_.layout.state_folder);
    if (done.ok()) return kept;
    teller_.Say(done.error().message);
    return job_.code_folder;
  }

  // A stop waits for what is finished to be durable, which a full disk may keep it from for ever.
  void EndIfFull() {
    const std::string paused = lenient::Text(*teller_.shown(), "paused");
    if (!draining_ || paused.empty()) {
      full_since_ = Instant();
      return;
    }
    if (full_since_ == Instant()) full_since_ = clock_.Now();
    if (clock_.Now() - full_since_ < kFullDiskLimit) return;
    GiveUp(fmt::format("stopped without waiting longer: {}. What was not written yet is run again",
                       Printable(paused, 2000)),
           kExitSignal + stopped_by_);
  }

  // Whoever holds the other end of the pipe has ended, also by what no program hears.
  void WatchStdin() {
    stdin_ = loop_.WatchReadable(STDIN_FILENO, [this] {
      std::array<char, 512> ignored{};
      const ssize_t n = read(STDIN_FILENO, ignored.data(), ignored.size());
      if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR))) return;
      loop_.Unwatch(stdin_);
      if (!draining_ && !stopping_) Interrupt(SIGTERM);
    });
  }

  // Ctrl-Z: the whole run stops, as one process would.
  void Suspend() {
    teller_.Say("stopped, with all its processes, until it is continued (fg)");
    processes_->Suspend();
    suspension::StopTime();
    suspension::StopThisProcess();
    suspension::ResumeTime();
    processes_->Continue();
    teller_.Say("continued");
    teller_.Tick();
  }

  // --- what other commands ask

  // What was shown last; null before anything was.
  json Shown() const {
    json progress = teller_.shown().value_or(json());
    if (progress.is_object()) progress.erase("metrics");  // nobody shows them
    return progress;
  }

  json StatusForOthers() const {
    const coordinator::JobLayout& layout = job_.layout;
    const json progress = Shown();
    return {{"pid", getpid()},
            {"output", OutputOf(request_, layout)},
            {"logs", layout.log_folder},
            {"state", layout.state_folder},
            {"command", request_.command},
            {"seconds", std::chrono::duration_cast<seconds>(teller_.Elapsed()).count()},
            {"stopping", draining_ || stopping_},
            {"line", progress.is_object() ? ProgressLine(progress) : "starts"},
            {"progress", progress}};
  }

  void StopForOthers(bool now) {
    if (!draining_) Interrupt(SIGTERM);
    if (now && !stopping_) Interrupt(SIGTERM);
  }

  // --- the end

  void Interrupt(int signo) {
    if (hangups_.IsRepeated(signo, clock_.Now())) return;
    if (draining_ || stopping_) {
      teller_.Stopping(true);
      if (!stopping_) Finish(kExitSignal + stopped_by_);
      processes_->KillNodes();
      return;
    }
    draining_ = true;
    stopped_by_ = signo;
    teller_.Stopping(false);
    processes_->Drain();
    if (poller_) poller_->Drain();
  }

  // Whether the run is over with it.
  bool CoordinatorEnded(CoordinatorExit how) {
    if (how != CoordinatorExit::kCannotStart) Record();
    switch (how) {
      case CoordinatorExit::kSucceeded: Finish(StatusOfSuccess()); return true;
      case CoordinatorExit::kFailed: Finish(kExitFailed); return true;
      case CoordinatorExit::kDrained: Finish(kExitSignal + stopped_by_); return true;
      case CoordinatorExit::kCannotStart: {
        const bool began = teller_.shown() || processes_->crashed();
        GiveUp(LastWord("error"), began ? kExitFailed : kExitUsage);
        return true;
      }
      case CoordinatorExit::kNotPublished: GiveUp(LastWord("ended")); return true;
      default: break;
    }
    if (draining_) {
      Finish(kExitSignal + stopped_by_);
    } else if (const Status there = prepared_.CheckLocked(); !there.ok()) {
      GiveUp(there.error().message);
    }
    return stopping_;
  }

  // What keeps the run from going on.
  void GiveUp(const std::string& why, int exit = kExitFailed) {
    teller_.Alert(why);
    Finish(exit);
  }

  // Ends the children; the loop stops once they are gone.
  void Finish(int exit) {
    if (stopping_) return;
    stopping_ = true;
    exit_ = exit;
    processes_->End();
  }

  void End() {
    prepared_.RemoveLeft(exit_ == kExitOk || exit_ == kExitLosses);
    const std::optional<json> last = LastProgress();
    control_.Tell({{"ended", exit_}, {"summary", teller_.SummaryText(last)}});
    if (exit_ != kExitUsage) teller_.Summarize(last);
    teller_.End(exit_, last);
    loop_.Stop();
  }

  std::optional<json> LastWords() const { return ParseObject(prepared_.launcher().LastWords()); }

  // One of its last words, or else what its log says last.
  std::string LastWord(const char* key) const {
    const std::optional<json> words = LastWords();
    return words && words->contains(key) ? (*words)[key].get<std::string>()
                                         : processes_->LastOfCoordinator();
  }

  // How far the job was, from the coordinator's last words; none if it had no time for them.
  std::optional<json> LastProgress() const {
    const std::optional<json> words = LastWords();
    if (!words || !words->contains("progress")) return std::nullopt;
    return (*words)["progress"];
  }

  int StatusOfSuccess() const {
    std::optional<json> last = LastProgress();
    if (!last) last = teller_.shown();
    return last && LostUnallowed(*last) && !request_.allow_failures ? kExitLosses : kExitOk;
  }

  const LocalJob& job_;
  const RunRequest& request_;
  Hangups hangups_;
  EarlySignals early_;  // until the loop has them; longer than what is to be taken away
  SystemClock clock_;
  RunTeller teller_;
  EventLoop loop_;
  EventLoop::WatchId stdin_ = EventLoop::WatchId::kNone;
  // In front of what the run holds: whoever waits for its end may begin the next one then.
  ControlSocket control_{
      loop_, {[this] { return StatusForOthers(); }, [this](bool now) { StopForOthers(now); }}};
  Preparation prepared_;
  DetachedRun detached_;
  std::unique_ptr<rest_client::RestClient> client_;  // until the poller has it
  std::unique_ptr<Supervisor> processes_;            // once prepared
  bool draining_ = false;
  Instant full_since_;       // while it stops; Instant(): there is room
  int stopped_by_ = SIGINT;  // the signal that drains
  bool stopping_ = false;
  int exit_ = kExitFailed;
  bool recorded_ = false;                   // what is run, for later commands
  std::unique_ptr<ProgressPoller> poller_;  // the last member: it posts to the loop
};

}  // namespace

int RunLocally(const LocalJob& job, const RunRequest& request, const NextCommands& next) {
  LocalRun run(job, request, next);
  return run.Run();
}

}  // namespace parallelrun::cli
