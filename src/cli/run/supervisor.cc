#include "cli/run/supervisor.h"

#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <sys/wait.h>

#include <algorithm>
#include <utility>

#include "agent/agent.h"
#include "agent/processes/process_tree.h"
#include "api/defaults.h"
#include "base/count_of.h"
#include "base/escape.h"
#include "base/fd.h"
#include "base/small_file.h"

namespace parallelrun::cli {
namespace {

using coordinator::CoordinatorExit;

constexpr Duration kStopLimit = seconds(30);
constexpr Duration kOrphanLimit = seconds(10);
constexpr Duration kVerdictLimit = seconds(20);
constexpr Duration kRespawnDelay = milliseconds(200);
constexpr Duration kRoomDelay = seconds(2);  // while a node has no room to start in
// While there is no process to be had: between two attempts, and for all of them.
constexpr Duration kProcessDelay = seconds(1);
constexpr Duration kProcessLimit = seconds(60);

// The last line of a log that says something.
std::string LastLine(const std::string& path) {
  constexpr size_t kLongest = size_t{64} << 10;
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text = file.ok() ? OrEmpty(ReadEnd(file.get(), kLongest, path)) : "";
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return Printable(text.substr(text.rfind('\n') + 1), 1000);
}

}  // namespace

Supervisor::Supervisor(EventLoop& loop, const Clock& clock, const LocalJob& job, Launcher& launcher,
                       RunTeller& teller, Calls calls)
    : loop_(loop),
      clock_(clock),
      job_(job),
      launcher_(launcher),
      teller_(teller),
      calls_(std::move(calls)),
      nodes_(job.nodes) {
  loop_.OnSignal(SIGCHLD, [this] { Reap(); });
}

Status Supervisor::Start() {
  if (const Status started = StartCoordinator(); !started.ok()) return started;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (const Status started = StartNode(i); !started.ok()) return started;
  }
  return {};
}

void Supervisor::KillNodes() {
  for (Node& node : nodes_) node.process.watch.Close();
}

void Supervisor::End() {
  if (ending_) return;
  ending_ = true;
  if (coordinator_ != 0) kill(coordinator_, SIGKILL);
  // Nothing is left to finish: what the coordinator did not wait for is void.
  KillNodes();
  loop_.After(kStopLimit, [this] {
    teller_.Say("some processes did not end within 30 s, and are killed");
    Gone();
  });
  if (AllGone()) Gone();
}

void Supervisor::SignalAll(int signo) const {
  if (coordinator_ != 0) kill(coordinator_, signo);
  for (const Node& node : nodes_) {
    if (node.process.guardian != 0) kill(node.process.guardian, signo);
  }
}

std::string Supervisor::LastOfCoordinator() const { return LastLine(launcher_.CoordinatorLog()); }

Status Supervisor::StartCoordinator() {
  const Result<pid_t> pid = launcher_.StartCoordinator();
  if (!pid.ok()) return pid.error();
  coordinator_ = *pid;
  return {};
}

Status Supervisor::StartNode(size_t index) {
  Result<Launcher::NodeProcess> process = launcher_.StartNode(index, nodes_[index].restarts);
  if (!process.ok()) return process.error();
  nodes_[index].process = std::move(*process);
  return {};
}

// What has ended unexpectedly. While other programs hold all the processes that there may be, the
// job waits for one, for a while.
void Supervisor::StartAgain(const std::function<Status()>& start, Duration delay, Instant since) {
  loop_.After(delay, [this, start, since] {
    if (ending_) return;
    const Status started = start();
    if (started.ok()) return;
    if (started.error().code != Code::kUnavailable || clock_.Now() - since > kProcessLimit) {
      return calls_.give_up(started.error().message);
    }
    StartAgain(start, kProcessDelay, since);
  });
}

void Supervisor::Reap() {
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
  if (ending_ && AllGone()) Gone();
}

void Supervisor::OnCoordinatorExit(int status) {
  if (ending_) return;
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  if (calls_.coordinator_ended(static_cast<CoordinatorExit>(code))) return;
  // Crashed, or the disk failed it: the next epoch goes on, as long as that brings the job
  // forward.
  crashes_ = teller_.succeeded() > succeeded_at_crash_ ? 1 : crashes_ + 1;
  succeeded_at_crash_ = teller_.succeeded();
  if (crashes_ > job_.job.spec.coordinator.restart_limit) {
    return calls_.give_up(
        fmt::format("the coordinator ended {} without a new result; its log: {}; last: {}",
                    CountOf(crashes_, "time"), launcher_.CoordinatorLog(), LastOfCoordinator()));
  }
  teller_.CoordinatorLost();
  StartAgain([this] { return StartCoordinator(); }, kRespawnDelay, clock_.Now());
}

void Supervisor::OnNodeExit(size_t index, int status) {
  Node& node = nodes_[index];
  if (ending_ || draining_) return;
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  const std::string log = launcher_.NodeLog(index);
  if (code == agent::kAgentFinished || code == agent::kAgentGaveUp ||
      code == agent::kAgentDrained) {
    node.over = true;
    finished_ = finished_ || code == agent::kAgentFinished;
    if (code != agent::kAgentFinished) teller_.NodeOver(index, LastLine(log));
    return EndWithoutNodes(index);
  }
  const auto start = [this, index] { return draining_ ? Status() : StartNode(index); };
  if (code == agent::kAgentNoRoom) {
    const std::string why = LastLine(log);
    if (why != no_room_) teller_.NodeWaits(index, why);
    no_room_ = why;
    return StartAgain(start, kRoomDelay, clock_.Now());
  }
  if (code == agent::kAgentCannotStart || code == 127) {  // 127: nor could its guardian
    return calls_.give_up(fmt::format("node {} cannot start: {}", index, LastLine(log)));
  }
  const auto nodes = static_cast<int32_t>(nodes_.size());
  if (++restarts_ > api::NodeRestartLimit(job_.job.spec, nodes, teller_.lost())) {
    return calls_.give_up(fmt::format("nodes ended {}, the last was node {}; its log: {}",
                                      CountOf(restarts_, "time"), index, log));
  }
  ++node.restarts;
  teller_.NodeLost(index);
  StartAgain(start, kRespawnDelay, clock_.Now());
}

// Once the last node has ended by itself, the coordinator has all it needs for a verdict. One
// that finished has heard it: what is left is to publish, however long that takes.
void Supervisor::EndWithoutNodes(size_t last) {
  if (std::any_of(nodes_.begin(), nodes_.end(), [](const Node& node) { return !node.over; })) {
    return;
  }
  loop_.After(kVerdictLimit, [this, last] {
    if (ending_ || finished_) return;
    calls_.give_up(fmt::format("no node is left, the last was node {}: {}", last,
                               LastLine(launcher_.NodeLog(last))));
  });
}

bool Supervisor::AllGone() const {
  return coordinator_ == 0 && std::all_of(nodes_.begin(), nodes_.end(), [](const Node& node) {
           return node.process.guardian == 0;
         });
}

void Supervisor::Gone() {
  if (gone_) return;
  gone_ = true;
  // A guardian that did not end, and what one that was itself killed has left.
  agent::KillDescendants(kOrphanLimit, [](pid_t, int) {});
  calls_.gone();
}

}  // namespace parallelrun::cli
