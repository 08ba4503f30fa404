// Ending: how the agent ends, and when it is done. An end that is begun stays the reason; a later
// one may only hurry it. Before it the node may close: all mini-batches are settled, its processes
// run their shutdown(), and it stays until the job is over. Pure; not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "agent/core/agent_types.h"
#include "base/time.h"

namespace parallelrun::agent {

class Ending {
 public:
  // What an end asks of the rest.
  enum class Then : uint8_t {
    kNothing,  // it had begun already
    kReturn,   // what has not begun goes back, the rest may finish until the deadline
    kDrop,     // nobody wants any of it
  };
  Then Begin(AgentEnd end, Duration grace, std::string message, Instant now);
  // Within `grace` from now at the latest.
  void Hurry(Duration grace, Instant now);

  // The coordinator says that all are settled. False when that is known, or an end has begun.
  bool Close(Instant now);
  // A new coordinator is there, which may need processes after all. It asks again if it does not.
  void Reopen() { closes_.reset(); }

  // Nothing more is begun: it closes, or an end has begun.
  bool begins_nothing() const { return begun() || closes_; }
  bool begun() const { return why_ != AgentEnd::kNone; }
  // Nobody waits for what this node still says.
  bool Mute() const { return why_ == AgentEnd::kFinished || why_ == AgentEnd::kLost; }
  bool draining() const { return why_ == AgentEnd::kDrained; }
  bool told_to_go() const { return draining() || why_ == AgentEnd::kFinished; }
  const std::string& message() const { return message_; }

  // How long the processes may stay, while nothing more is begun.
  struct Stay {
    bool over = false;              // those that still work are killed
    Instant stop_by = kNever;       // whoever is asked for shutdown() now is killed then
    Instant hung = Instant::min();  // whoever was at one thing since before leaves its stack
  };
  // A shutdown() may take `timeout`. Once the job is over nobody waits for it: `after_job` is all
  // that it gets then.
  Stay ProcessesStay(Duration timeout, Duration after_job, Instant now) const;

  // No process is left. `all_said`: nothing is held, and nothing is to be told.
  void NoProcessLeft(bool all_said, bool registered, Instant now);
  bool done() const { return done_; }
  AgentEnd end() const { return done_ ? why_ : AgentEnd::kNone; }

 private:
  AgentEnd why_ = AgentEnd::kNone;
  std::string message_;
  Instant deadline_ = kNever;
  std::optional<Instant> closes_;  // since when
  bool done_ = false;
};

}  // namespace parallelrun::agent
