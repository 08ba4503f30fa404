// What goes into and comes out of AgentCore. Plain data.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/time.h"
#include "job/attempt_result.h"
#include "job/ids.h"

namespace parallelrun::agent {

struct AgentOptions {
  uint32_t node = 0;
  Duration away_limit = std::chrono::minutes(10);  // without any answer of a coordinator
  // When the coordinator asks for a drain. With what follows it (last reports, logs, goodbye: 17 s)
  // it fits into the 60 s that a pod has.
  Duration drain_grace = seconds(40);
  Duration shutdown_limit = seconds(30);          // of shutdown() once the job is over
  bool log_to_file = false;                       // too: sys/node/<node>/_main.txt
  std::string farewell = "/dev/termination-log";  // gets the last error, if it exists
  std::string ready_file;                         // made once a process is ready (ready_mark.h)
  int drained_exit = 3;                           // kAgentDrained, or what stands for it in a pod
};

// What the rows of a result are.
enum class Rows : uint8_t {
  kNone,      // they are only counted
  kLines,     // that end, as many as it says at least
  kRowGroup,  // of Parquet, of as many as it says
};

// What the agent learns when it registers.
struct Registration {
  job::Incarnation incarnation;
  uint64_t settings_digest = 0;
  uint32_t first_process = 0;
  uint32_t processes = 1;
  Duration run_timeout = seconds(60);
  Duration overhead_timeout = seconds(600);
  Duration shutdown_timeout = seconds(300);
  Duration lease = seconds(10);
  bool speculation = true;  // false: run() must have ended when its lease has
  bool async = false;       // the script keeps several mini-batches in flight
  Rows rows = Rows::kLines;
  bool staged = false;  // in front of the rows stands the list of their side files
};

// Process numbers that one incarnation may use (docs/coordinator-api.md).
inline constexpr uint32_t kProcessRange = 1000;

enum class CallKind : uint8_t { kNone, kRegister, kReport, kPark };

enum class CallFailure : uint8_t {
  kUnreachable,  // no answer, or one that makes no sense
  kBusy,         // 503: it lives, and cannot now
  kStale,        // 409: register again
  kRefused,      // 400, 401, 403, 404, 413, or another run's 409: it will never work
};

// The status page of a process (docs/worker-protocol.md).
enum class Phase : uint8_t {
  kStarting = 0,
  kInit = 1,
  kWaiting = 2,
  kLoading = 3,
  kRun = 4,
  kRows = 5,
  kShutdown = 6,
};

struct StatusReading {
  uint64_t sequence = 0;
  Phase phase = Phase::kStarting;
  Instant since{};
  // What was not begun up to this sequence will not be: the process knows that it is taken back.
  uint64_t taken_back = 0;

  // It works on the mini-batch `sequence`.
  bool Working() const { return phase >= Phase::kLoading && phase <= Phase::kRows; }
};

// "process007".
std::string ProcessName(uint32_t number);

struct ResultAnswer : job::AttemptResult {
  uint64_t sequence = 0;
  std::string_view rows;  // all of them, or the last part
};

// The kind of a failure for want of space (docs/worker-protocol.md).
inline constexpr char kNoSpaceKind[] = "NoSpace";

struct FailedAnswer : job::AttemptResult {
  uint64_t sequence = 0;
  job::Cause cause = job::Cause::kRun;
  std::string kind;
  std::string message;
  std::string log;
  job::OutputRanges output{};
};

// A mini-batch that has come to an end on this node, for its log.
struct MiniBatchNote : job::AttemptResult {
  uint32_t process = 0;
  job::BatchId id = 0;
  uint32_t items = 0;
  std::string error_kind;  // "": it succeeded
};

struct WorkerAction {
  enum class Kind : uint8_t {
    kStart,     // start process `process`
    kGive,      // send mini-batch `sequence`
    kTakeBack,  // all up to `sequence` that have not begun
    kStop,      // ask for shutdown()
    kHeader,    // tell it the header of the job, `work`
    kWhere,     // find out where it is in Python, within kStackWait
    kKill,
  };
  Kind kind = Kind::kStart;
  uint32_t process = 0;
  uint64_t sequence = 0;
  std::string_view work;
  std::string_view why{};  // it is killed, for the log; empty: there is nothing to say
  // It is killed because it hangs: where it is in Python is to be found out before, and there is
  // time for that (kStackWait).
  bool stack = false;
};

// Nobody waits longer than this for the stack of a process.
inline constexpr Duration kStackWait = milliseconds(500);

// A mini-batch whose Work names objects: they are to be fetched.
struct ObjectsWanted {
  uint64_t key = 0;
  std::string_view work;
};

enum class AgentEnd : uint8_t {
  kNone,
  kFinished,  // the job is over
  kDrained,
  kGaveUp,  // no process can start here
  kLost,    // the coordinator stayed away, or refused this node
};

using Key = uint64_t;  // this node's own name of a mini-batch that it holds; never reused

inline constexpr Instant kNever = Instant::max();

}  // namespace parallelrun::agent
