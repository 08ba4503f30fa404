// What AgentCore knows of its mini-batches, processes and exchanges. Plain data, only for it.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "agent/core/agent_types.h"
#include "base/time.h"
#include "job/ids.h"
#include "job/node_messages.h"

namespace parallelrun::agent_state {

using Key = uint64_t;  // local name of a batch, never reused

enum class BatchState : uint8_t { kQueued, kGiven, kFinished };
struct Batch {
  LeaseName name;
  uint64_t digest = 0;
  std::string work;
  BatchState state = BatchState::kQueued;
  bool offered = false;  // of an earlier incarnation, not adopted yet
  bool started = false;
  Instant confirmed{};   // when the request was sent whose answer granted or renewed it last
  bool refused = false;  // forgotten by the coordinator; a process still has it
  Instant refused_at{};
  uint32_t bounces = 0;  // processes that died with it in front, blameless
  // Once it is given: rows so far; once finished: all of the answer.
  Finished::Kind kind = Finished::Kind::kReturned;
  uint32_t process = 0;
  uint64_t run_ns = 0;
  uint64_t cpu_ns = 0;
  uint64_t elapsed_ns = 0;
  uint32_t items_succeeded = 0;
  uint32_t items_skipped = 0;
  uint32_t row_count = 0;
  std::string rows;
  uint64_t rows_received = 0;  // by the coordinator, in parts
  Cause cause = Cause::kRun;
  std::string error_kind;
  std::string message;
  std::string log;
  OutputRanges output{};
};

enum class ProcessState : uint8_t { kStarting, kReady, kStopping, kKilled };
struct Given {
  uint64_t sequence = 0;
  Key key = 0;
  Instant since{};  // when it was handed out
};
struct Process {
  ProcessState state = ProcessState::kStarting;
  std::deque<Given> given;
  StatusReading status;
  Instant busy_since{};
  Instant stop_deadline = Instant::max();
  bool answered = false;
  bool late = false;        // at its mini-batch for so long that nothing should wait behind it
  uint64_t taken_back = 0;  // what has not begun up to this sequence
  uint64_t told = 0;        // metrics and headers
  // Why it was killed, if a time-out was the reason; 0: no mini-batch is to blame.
  uint64_t kill_sequence = 0;
  Cause kill_cause = Cause::kProcessEnded;
  uint64_t kill_run_ns = 0;
  std::string kill_message;
};
struct Event {
  uint32_t process = 0;
  ProcessEvent::Kind kind = ProcessEvent::Kind::kReady;
  std::string message;
  std::string log;
};
struct Flight {  // an exchange under way
  bool busy = false;
  Incarnation incarnation;
  uint64_t number = 0;  // of the request, within the incarnation
  Instant sent{};
  bool unheard = false;  // it said so
  uint32_t want = 0;
  size_t events = 0;
  std::vector<Key> held;
  std::vector<Key> finished;
  std::vector<std::pair<Key, uint64_t>> parts;  // rows received once an answer came
};
struct NameHash {
  size_t operator()(const LeaseName& name) const {
    return name.id * 0x9E3779B97F4A7C15U ^ (name.fence.number << 20) ^ name.fence.epoch;
  }
};

}  // namespace parallelrun::agent_state
