// Shutdowns: what becomes of the shutdown() of this node's processes. Only those whose script has
// one are known here. Pure; not thread-safe.
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
  job::ProcessEvent::Kind kind = job::ProcessEvent::Kind::kClosed;
  std::string message{};
  std::string log{};
};

class Shutdowns {
 public:
  // The process is ready, and its script has a shutdown(), or leaves something else for its end.
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
  std::map<uint32_t, std::optional<ShutdownEnd>> owing_;  // and how it ended, once it has
};

}  // namespace parallelrun::agent
