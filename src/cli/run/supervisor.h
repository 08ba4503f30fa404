// The processes of a local run: starts the coordinator and the nodes, replaces those that end
// unexpectedly within the job's limits, and ends them all. What that means for the run its owner
// decides. On the loop's thread.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/event_loop.h"
#include "base/time.h"
#include "cli/run/launcher.h"
#include "cli/run/local_job.h"
#include "cli/run/run_teller.h"
#include "coordinator/server.h"

namespace parallelrun::cli {

class Supervisor {
 public:
  struct Calls {
    // The coordinator has ended so. Whether that is the end of the run; false: it is started again.
    std::function<bool(coordinator::CoordinatorExit)> coordinator_ended;
    // Nothing can go on.
    std::function<void(const std::string& why)> give_up;
    // After End: nothing runs any more.
    std::function<void()> gone;
  };
  // All of them must outlive it; it reaps the children of this process from now on.
  Supervisor(EventLoop& loop, const Clock& clock, const LocalJob& job, Launcher& launcher,
             RunTeller& teller, Calls calls);
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  Status Start();
  // The coordinator sends the nodes home: none is started any more.
  void Drain() { draining_ = true; }
  // Ends all, whatever it does. Calls `gone` once, at once or when the last one has ended, and
  // after 30 s in any case.
  void End();
  // Ctrl-Z: nothing of the run works, and no time goes by for it, until Continue.
  void Suspend() { SignalAll(SIGTSTP); }
  void Continue() { SignalAll(SIGCONT); }
  // What is in run() is ended, too.
  void KillNodes();

  // The coordinator has ended without a verdict at least once.
  bool crashed() const { return crashes_ > 0; }
  // The last line of its log that says something.
  std::string LastOfCoordinator() const;

 private:
  struct Node {
    Launcher::NodeProcess process;  // guardian 0: not running
    int restarts = 0;
    bool over = false;  // finished, or given up
  };

  void SignalAll(int signo) const;
  Status StartCoordinator();
  Status StartNode(size_t index);
  void StartAgain(const std::function<Status()>& start, Duration delay, Instant since);
  void Reap();
  void OnCoordinatorExit(int status);
  void OnNodeExit(size_t index, int status);
  void EndWithoutNodes(size_t last);
  bool AllGone() const;
  void Gone();

  EventLoop& loop_;
  const Clock& clock_;
  const LocalJob& job_;
  Launcher& launcher_;
  RunTeller& teller_;
  const Calls calls_;
  pid_t coordinator_ = 0;  // 0: not running
  std::vector<Node> nodes_;
  uint64_t succeeded_at_crash_ = 0;  // mini-batches
  int crashes_ = 0;
  int restarts_ = 0;
  bool draining_ = false;
  bool ending_ = false;
  bool gone_ = false;
  bool finished_ = false;  // a node was told of the verdict
  std::string no_room_;    // why a node could not start the last time
};

}  // namespace parallelrun::cli
