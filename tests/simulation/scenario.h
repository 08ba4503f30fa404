// What one seed decides before the first event: the job, its constants and the rates of all faults.
// Drawing the rates too makes some runs calm and some vicious. Plain data.
#pragma once

#include <array>
#include <cstdint>

#include "base/time.h"
#include "job/verdict.h"
#include "tests/simulation/own_clock.h"
#include "tests/support/fault_files.h"

namespace parallelrun::simulation {

// What may go wrong. The order is that of Name(Fault).
enum class Fault : uint8_t {
  kKillCoordinator,    // kill -9; the page cache lives on
  kCrashMachine,       // power failure under the coordinators: what was not synced may be lost
  kSecondCoordinator,  // a new one starts while the old one still runs
  kFreezeCoordinator,
  kFreezeAgent,
  kKillAgent,
  kSecondAgent,  // a new one for the same node while the old one still runs
  kCutOff,       // a node's messages are lost, one way or both
  kDiskFull,
  kDiskError,    // an operation fails, before or after it took effect
  kDieInside,    // kill -9 or power failure right before the n-th file operation from now
  kComeBetween,  // a new coordinator starts right before the n-th file operation from now
  kInputGrows,   // files appear in the input folder
  kDrainCoordinator,
  kEndCoordinator,  // with a SIGTERM
  kDrainAgent,
  kScale,        // a person wants another number of nodes
  kNewJob,       // a person applies another job on the same folders, while this one is at work
  kForeignFile,  // somebody puts a file in the output's place, and moves it away some time later
  kLedgerGone,   // a coordinator sees its log no more, which a person puts back for the next one
  kFolderGone,   // somebody moves the output folder away, where the script's files are the result
  kLost,         // counted, not drawn: messages
  kDuplicated,   // likewise
  kCount,
};
inline constexpr size_t kFaults = static_cast<size_t>(Fault::kCount);
inline constexpr size_t kDrawnFaults = static_cast<size_t>(Fault::kLost);
const char* Name(Fault fault);

// What is wrong with one node from the first event to the last, also when the faults are over.
enum class BadNode : uint8_t {
  kNone,
  kCutOff,
  kCrashes,    // soon after each start
  kFailsInit,  // all of its processes
  kNeverEnds,  // any run()
  kDies,       // in each run()
};

const char* Name(BadNode bad);

struct Scenario {
  uint64_t seed = 0;
  bool liveness = false;  // faults stop at `faults_end`; the job must end within `bound` after it

  // The job
  uint32_t nodes = 1;  // at the start, and at most
  uint32_t processes = 1;
  bool pods = false;  // agents are pods with numbers
  uint32_t files = 20;
  uint32_t files_per_batch = 1;
  uint32_t chunk_files = 8;
  uint32_t run_max_try = 3;
  uint32_t max_losses = 10;
  job::Thresholds thresholds;
  bool append_row = true;
  uint32_t new_jobs = 0;  // on the same folders, by a person: with any ifExists
  bool isolate = false;
  bool speculation = false;
  Duration slow_least{};

  // Time
  Duration lease{};
  Duration look{};
  Duration broken_grace{};
  Duration tick{};
  Duration run_mean{};
  Duration run_timeout{};
  Duration call_timeout{};
  Duration sync{};
  Duration listing{};  // of one chunk
  Duration delay{};    // of a message, mean
  Duration between_faults{};
  Duration faults_end{};
  Duration bound{};
  uint64_t max_events = 0;
  bool timed = false;  // what coordinators take of this machine is measured
  // Rates of the processes' own clocks, in parts of OwnClock::kTrue: drawn from here to there.
  int64_t slowest_clock = OwnClock::kTrue;
  int64_t fastest_clock = OwnClock::kTrue;
  BadNode bad_node = BadNode::kNone;  // the last node, where there are several
  BadNode BadnessOf(uint32_t node) const { return node + 1 == nodes ? bad_node : BadNode::kNone; }

  // Rates in parts of 1,000
  uint32_t lost = 0;
  uint32_t duplicated = 0;
  uint32_t late = 0;       // messages delayed beyond the lease
  uint32_t misrouted = 0;  // calls that go to an older coordinator that still lives
  uint32_t rerouted = 0;   // calls at which a node looks for a coordinator anew
  uint32_t in_parts = 0;   // results whose rows come in parts
  uint32_t poison = 0;     // files whose mini-batch always fails
  uint32_t killers = 0;    // files that end the agent which runs them
  bool quick = false;      // and that at once, before a heartbeat could tell that run() had begun
  bool only_killers = false;  // nothing else goes wrong
  uint32_t bad = 0;           // files without a row: failed items of a good mini-batch
  uint32_t flaky = 0;         // attempts that fail
  uint32_t init_fails = 0;
  Duration ownerless = std::chrono::hours(24);  // without a node and a call: a coordinator ends
  bool rival = false;                           // at first another job has claimed the output
  bool shutdown = false;                        // the script has one
  uint32_t shutdown_bad = 0;                    // those that raise or hang
  Duration shutdown_timeout{};
  uint32_t hangs = 0;  // answers after which the process begins with nothing more
  std::array<uint32_t, kDrawnFaults> weights{};
};

// Whether nothing in it excuses two nodes that are in run() of one mini-batch: a frozen agent
// cannot end its processes, a second agent of a node tells that the first is dead, and a new epoch
// does not wait for a node that was scaled away. Without the numbers of pods a call of a dead agent
// can pass for such a second one; and with them a newer epoch is seen (Draw).
bool OneAtATime(const Scenario& scenario);

Scenario Draw(uint64_t seed, bool liveness);
// Many nodes of two processes, a second of work each time, and a coordinator that is killed now and
// then while they are at it: what a coordinator does that costs more with each node shows here.
Scenario Crowd(uint64_t seed, uint32_t nodes);
// In some runs clocks run at different rates; where OneAtATime, by less than what
// docs/coordinator-api.md says under "The agent's own deadline".
void DrawClocks(Scenario& scenario, FaultRng& rng);

}  // namespace parallelrun::simulation
