#include "cli/run/local_run.h"

#include <signal.h>
#include <spdlog/fmt/fmt.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "agent/agent.h"
#include "agent/processes/process_tree.h"
#include "api/defaults.h"
#include "base/escape.h"
#include "base/event_loop.h"
#include "base/version.h"
#include "cli/run/display.h"
#include "cli/run/launcher.h"
#include "cli/run/preflight.h"
#include "cli/run/progress_poller.h"
#include "cli/run/progress_teller.h"
#include "cli/run/run_folder.h"
#include "coordinator/server.h"
#include "coordinator/start/state_lock.h"
#include "rest/client.h"

namespace parallelrun {
namespace {

using nlohmann::json;

constexpr Duration kStopLimit = seconds(30);
constexpr Duration kOrphanLimit = seconds(10);
constexpr Duration kVerdictLimit = seconds(20);
constexpr Duration kRespawnDelay = milliseconds(200);
constexpr Duration kRoomDelay = seconds(2);  // while a node has no room to start in
// While there is no process to be had: between two attempts, and for all of them.
constexpr Duration kProcessDelay = seconds(1);
constexpr Duration kProcessLimit = seconds(60);

std::string LastLine(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  std::string last;
  while (std::getline(in, line)) {
    if (!line.empty()) last = line;
  }
  return Printable(last, 1000);
}

class LocalRun {
 public:
  LocalRun(const LocalJob& job, const RunRequest& request, const NextCommands& next)
      : job_(job), request_(request), next_(next), display_(stdout, isatty(STDOUT_FILENO) != 0) {}

  int Run() {
    started_ = clock_.Now();
    if (const Status prepared = Prepare(); !prepared.ok()) return CannotStart(prepared.error());
    loop_.OnSignal(SIGCHLD, [this] { Reap(); });
    for (const int signo : {SIGINT, SIGTERM, SIGHUP}) {
      loop_.OnSignal(signo, [this, signo] { Interrupt(signo); });
    }
    loop_.Post([this] {
      if (const Status started = StartAll(); !started.ok()) Finish(CannotStart(started.error()));
    });
    loop_.Run();
    return exit_;
  }

 private:
  struct Node {
    Launcher::NodeProcess process;  // guardian 0: not running
    int restarts = 0;
    bool over = false;  // finished, or given up
  };

  int CannotStart(const Error& error) {
    display_.Say(error.message);
    return kExitUsage;
  }

  Status Prepare() {
    // Orphans of a guardian that was killed come to us, to be ended with the rest.
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    // Worker processes of the same user cannot look into this one, where the job's key is.
    prctl(PR_SET_DUMPABLE, 0);
    if (const Status checked = Preflight(); !checked.ok()) return checked;
    Result<std::unique_ptr<File>> lock = LockState(*files_, job_.layout.state_folder);
    if (!lock.ok() && lock.error().code == Code::kUnavailable) return lock.error();
    if (!lock.ok()) return Unusable(lock.error());
    lock_ = std::move(*lock);

    RestClientOptions options;
    options.base_url = launcher_->Url();
    options.token = [token = launcher_->OperatorToken()] { return token; };
    options.user_agent = std::string("parallelrun/") + kVersion;
    Result<std::unique_ptr<RestClient>> client = RestClient::Make(std::move(options));
    if (!client.ok()) return client.error();
    client_ = std::move(*client);
    nodes_.resize(job_.nodes);
    return {};
  }

  // Everything that is wrong and can be known now, in one list; nothing is written but below
  // TMPDIR.
  Status Preflight() {
    const Result<Programs> programs = FindPrograms();
    if (!programs.ok()) return programs.error();
    std::vector<std::string> problems;
    const Result<std::string> script = CheckCode(job_.code_folder, job_.job.spec.entry_script);
    if (!script.ok()) problems.push_back("code: " + script.error().message);
    // Beside it, what takes as long as Python does to start.
    PythonCheck python(job_, request_, script.ok() ? *script : "", programs->python_package);
    InitRestThread();
    Status prepared = folder_.Make();
    if (prepared.ok() && script.ok()) {
      launcher_ = std::make_unique<Launcher>(job_, request_, folder_.path());
      prepared = launcher_->Prepare(*programs, *script);
    }
    InputSize size;
    for (std::string& problem : CheckInputs(job_, request_, size)) {
      problems.push_back(std::move(problem));
    }
    for (std::string& problem : CheckOutput(job_, request_)) {
      problems.push_back(std::move(problem));
    }
    if (!prepared.ok()) problems.push_back(prepared.error().message);
    const PythonReport report = python.Finish();
    for (const PythonProblem& problem : report.problems) {
      problems.push_back(problem.part + ": " + problem.text);
    }
    if (!problems.empty()) return Error{Code::kInvalid, ListOf(problems)};
    facts_ = Facts(job_, report, size);
    return {};
  }

  // The folder that is to hold output, logs and state is of no use: what to do.
  Error Unusable(const Error& why) const {
    const std::string flag = request_.quick
                                 ? "--output FOLDER"
                                 : "--volume " + job_.job.spec.state.in.volume + "=FOLDER";
    return {why.code,
            fmt::format("the job's state folder cannot be used: {}; make room or correct the "
                        "permissions there, or choose another folder with {}",
                        why.message, flag)};
  }

  // --- children

  Status StartAll() {
    for (const std::string& note : job_.notes) display_.Say(note);
    for (const std::string& note : launcher_->notes()) display_.Say(note);
    if (!facts_.empty()) display_.Say(facts_);
    if (const Status started = StartCoordinator(); !started.ok()) return started;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (const Status started = StartNode(i); !started.ok()) return started;
    }
    poller_ = std::make_unique<ProgressPoller>(
        std::move(client_),
        [this](json progress) {
          loop_.Post([this, progress = std::move(progress)] { Show(progress); });
        },
        [this](std::string why) {
          loop_.Post([this, why = std::move(why)] {
            if (!stopping_) display_.Progress("  " + Printable(why, 2000), clock_.Now());
          });
        });
    if (draining_) poller_->Drain();  // interrupted before there was one
    return {};
  }

  Status StartCoordinator() {
    const Result<pid_t> pid = launcher_->StartCoordinator();
    if (!pid.ok()) return pid.error();
    coordinator_ = *pid;
    return {};
  }

  Status StartNode(size_t index) {
    Result<Launcher::NodeProcess> process = launcher_->StartNode(index, nodes_[index].restarts);
    if (!process.ok()) return process.error();
    nodes_[index].process = std::move(*process);
    return {};
  }

  // What has ended unexpectedly. While other programs hold all the processes that there may be, the
  // job waits for one, for a while.
  void StartAgain(const std::function<Status()>& start, Duration delay, Instant since) {
    loop_.After(delay, [this, start, since] {
      if (stopping_) return;
      const Status started = start();
      if (started.ok()) return;
      if (started.error().code != Code::kUnavailable || clock_.Now() - since > kProcessLimit) {
        display_.Say(started.error().message);
        return Finish(kExitFailed);
      }
      StartAgain(start, kProcessDelay, since);
    });
  }

  void Reap() {
    int status = 0;
    for (pid_t pid = 0; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
      if (pid == coordinator_) {
        coordinator_ = 0;
        OnCoordinatorExit(status);
        continue;
      }
      for (size_t i = 0; i < nodes_.size(); ++i) {
        if (nodes_[i].process.guardian == pid) {
          nodes_[i].process = {};
          OnNodeExit(i, status);
        }
      }
    }
    if (stopping_) CheckStopped();
  }

  void OnCoordinatorExit(int status) {
    if (stopping_) return;
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    switch (static_cast<CoordinatorExit>(code)) {
      case CoordinatorExit::kSucceeded: return Finish(StatusOfSuccess());
      case CoordinatorExit::kFailed: return Finish(kExitFailed);
      case CoordinatorExit::kDrained: return Finish(kExitSignal + stopped_by_);
      case CoordinatorExit::kCannotStart: {
        const std::optional<json> last = LastWords();
        display_.Say(last && last->contains("error") ? (*last)["error"].get<std::string>()
                                                     : LastLine(launcher_->CoordinatorLog()));
        return Finish(teller_.shown() || crashes_ > 0 ? kExitFailed : kExitUsage);
      }
      case CoordinatorExit::kNotPublished: {
        const std::optional<json> last = LastWords();
        display_.Say(last && last->contains("ended") ? (*last)["ended"].get<std::string>()
                                                     : LastLine(launcher_->CoordinatorLog()));
        return Finish(kExitFailed);
      }
      default: break;
    }
    if (draining_) return Finish(kExitSignal + stopped_by_);
    // Crashed, or the disk failed it: the next epoch goes on, as long as that brings the job
    // forward.
    crashes_ = teller_.succeeded() > succeeded_at_crash_ ? 1 : crashes_ + 1;
    succeeded_at_crash_ = teller_.succeeded();
    if (crashes_ > job_.job.spec.coordinator.restart_limit) {
      display_.Say(fmt::format(
          "the coordinator ended {} times without a new result; its log: {}; last: {}", crashes_,
          launcher_->CoordinatorLog(), LastLine(launcher_->CoordinatorLog())));
      return Finish(kExitFailed);
    }
    if (const Status there = CheckLocked(*files_, *lock_, job_.layout.state_folder); !there.ok()) {
      display_.Say(there.error().message);
      return Finish(kExitFailed);
    }
    display_.Say("the coordinator ended unexpectedly, starting the next one");
    StartAgain([this] { return StartCoordinator(); }, kRespawnDelay, clock_.Now());
  }

  void OnNodeExit(size_t index, int status) {
    Node& node = nodes_[index];
    if (stopping_ || draining_) return;
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (code == 0 || code == 1 || code == 3) {  // finished, given up, drained
      node.over = true;
      finished_ = finished_ || code == 0;
      return EndWithoutNodes(index);
    }
    if (code == kAgentNoRoom) {
      const std::string why = LastLine(launcher_->NodeLog(index));
      if (why != no_room_) display_.Say(fmt::format("paused: node {}: {}", index, why));
      no_room_ = why;
      return StartAgain([this, index] { return draining_ ? Status() : StartNode(index); },
                        kRoomDelay, clock_.Now());
    }
    if (code == 2 || code == 127) {
      display_.Say(
          fmt::format("node {} cannot start: {}", index, LastLine(launcher_->NodeLog(index))));
      return Finish(kExitFailed);
    }
    const auto nodes = static_cast<int32_t>(nodes_.size());
    if (++restarts_ > NodeRestartLimit(job_.job.spec, nodes, teller_.lost())) {
      display_.Say(fmt::format("nodes ended {} times, the last was node {}; its log: {}", restarts_,
                               index, launcher_->NodeLog(index)));
      return Finish(kExitFailed);
    }
    ++node.restarts;
    display_.Say(fmt::format("node {} ended unexpectedly, replacing it", index));
    StartAgain([this, index] { return draining_ ? Status() : StartNode(index); }, kRespawnDelay,
               clock_.Now());
  }

  // Once the last node has ended by itself, the coordinator has all it needs for a verdict. One
  // that finished has heard it: what is left is to publish, however long that takes.
  void EndWithoutNodes(size_t last) {
    for (const Node& node : nodes_) {
      if (!node.over) return;
    }
    loop_.After(kVerdictLimit, [this, last] {
      if (stopping_ || finished_) return;
      display_.Say(fmt::format("no node is left, the last was node {}: {}", last,
                               LastLine(launcher_->NodeLog(last))));
      Finish(kExitFailed);
    });
  }

  // --- progress

  void Show(json progress) {
    if (!stopping_) teller_.Show(std::move(progress), clock_.Now());
  }

  // --- the end

  void Interrupt(int signo) {
    if (draining_ || stopping_) {
      display_.Say("stopping at once");
      if (!stopping_) Finish(kExitSignal + stopped_by_);
      KillNodes();
      return;
    }
    draining_ = true;
    stopped_by_ = signo;
    display_.Say("finishing the mini-batches that run; Ctrl-C again stops at once");
    if (poller_) poller_->Drain();
  }

  void KillNodes() {
    for (Node& node : nodes_) node.process.watch.Close();
  }

  // Ends the children; the loop stops once they are gone.
  void Finish(int exit) {
    if (stopping_) return;
    stopping_ = true;
    exit_ = exit;
    if (coordinator_ != 0) kill(coordinator_, SIGKILL);
    // Nothing is left to finish: what the coordinator did not wait for is void.
    KillNodes();
    loop_.After(kStopLimit, [this] {
      display_.Say("some processes did not end within 30 s, and are killed");
      End();
    });
    CheckStopped();
  }

  void CheckStopped() {
    bool running = coordinator_ != 0;
    for (const Node& node : nodes_) running = running || node.process.guardian != 0;
    if (!running) End();
  }

  void End() {
    if (stopped_) return;
    stopped_ = true;
    // A guardian that did not end, and what one that was itself killed has left.
    KillDescendants(kOrphanLimit, [](pid_t, int) {});
    RemoveLeft();
    if (exit_ != kExitUsage) Summarize();
    loop_.Stop();
  }

  // A coordinator that was killed could not remove its token and its claim (docs/ledger.md). No
  // other one is at work here: this command holds the state folder's lock.
  void RemoveLeft() const {
    const JobLayout& layout = job_.layout;
    // What cannot be removed now the next run takes over.
    static_cast<void>(
        RemoveLeftBeside(*MakeSystemFiles(), layout.state_folder, layout.output_folder,
                         layout.output_path.empty() ? "" : job_.job.spec.output.file_name));
  }

  std::optional<json> LastWords() const {
    json last = json::parse(launcher_->LastWords(), nullptr, false);
    if (!last.is_object()) return std::nullopt;
    return last;
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

  void Summarize() {
    const std::string& logs = job_.layout.log_folder;
    const char* const lost =
        job_.job.spec.isolate_failures ? "/dead-letter.jsonl" : "/failures.jsonl";
    teller_.Summarize(LastProgress(), {logs, logs + lost, next_.resume, next_.retry_failed},
                      clock_.Now() - started_);
  }

  const LocalJob& job_;
  const RunRequest& request_;
  const NextCommands& next_;
  Display display_;
  ProgressTeller teller_{display_};
  SystemClock clock_;
  Instant started_;
  EventLoop loop_;
  const std::unique_ptr<Files> files_ = MakeSystemFiles();
  std::unique_ptr<File> lock_;  // of the state folder
  RunFolder folder_;
  std::string facts_;  // what the preflight has found, for the user
  std::unique_ptr<Launcher> launcher_;
  std::unique_ptr<RestClient> client_;  // until the poller has it
  pid_t coordinator_ = 0;
  std::vector<Node> nodes_;
  uint64_t succeeded_at_crash_ = 0;  // mini-batches
  int crashes_ = 0;
  int restarts_ = 0;
  bool draining_ = false;
  int stopped_by_ = SIGINT;  // the signal that drains
  bool stopping_ = false;
  bool stopped_ = false;
  int exit_ = kExitFailed;
  bool finished_ = false;                   // a node was told of the verdict
  std::string no_room_;                     // why a node could not start the last time
  std::unique_ptr<ProgressPoller> poller_;  // the last member: it posts to the loop
};

}  // namespace

int RunLocally(const LocalJob& job, const RunRequest& request, const NextCommands& next) {
  LocalRun run(job, request, next);
  return run.Run();
}

}  // namespace parallelrun
