// Closing: what becomes of the shutdown() of this node's processes, and whether the coordinator has
// asked for it: then nothing more is begun here, the processes are asked to stop, and the agent
// stays until the job is over. Only processes whose script has a shutdown() are known here. Pure;
// not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "agent/core/agent_types.h"
#include "base/time.h"
#include "job/node_messages.h"

namespace parallelrun::agent {

// How a shutdown() ended, as the coordinator is told.
struct ShutdownEnd {
  ProcessEvent::Kind kind = ProcessEvent::Kind::kClosed;
  std::string message{};
  std::string log{};
};

class Closing {
 public:
  // The coordinator asks for it. False when it was asked for before.
  bool Begin(Instant now);
  // A new coordinator is there, which may need processes after all. It asks again if it does not.
  void Forget() { begun_.reset(); }
  bool begun() const { return begun_.has_value(); }
  // Whoever still works or stops is killed, `limit` after the beginning.
  Instant Deadline(Duration limit) const { return *begun_ + limit; }

  // The process is ready, and its script has a shutdown().
  void Owes(uint32_t process) { owing_.try_emplace(process); }
  bool owes(uint32_t process) const { return owing_.contains(process); }
  const auto& owing() const { return owing_; }
  // The numbers of the processes that live and owe it, decimal, with a blank between two.
  std::string OwingText() const;
  // shutdown() has returned, or raised with that message.
  void Stopped(uint32_t process, std::string failure, std::string log);
  // The process is gone, in the way that `words` say. `cut_off`: it was killed so long after it had
  // been asked to stop, where it may take `timeout`. nullopt: there was nothing to shut down.
  std::optional<ShutdownEnd> Exited(uint32_t process, const std::string& words,
                                    std::optional<Duration> cut_off, Duration timeout);

 private:
  std::optional<Instant> begun_;
  std::map<uint32_t, std::optional<ShutdownEnd>> owing_;  // and how it ended, once it has
};

}  // namespace parallelrun::agent
