// Lives: what the lives of the worker processes come to: what the coordinator hears of each, how
// its shutdown() ended, under which name the next one is started, and when enough were tried. Which
// process holds what is the business of Processes. Pure; not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/core/process_facts.h"
#include "agent/core/shutdowns.h"
#include "agent/core/starts.h"
#include "agent/core/told.h"
#include "base/time.h"

namespace parallelrun::agent {

class Lives {
 public:
  // Of the node with that number: its processes' logs are named after it.
  explicit Lives(uint32_t node) : node_(node) {}

  // A registration grants names from `first` on; nothing is left of them: another one is needed.
  void Grant(uint32_t first) { starts_.Grant(first); }
  std::optional<uint32_t> NextName() { return starts_.Next(); }
  // Why a node with `wanted` processes starts no more; nullopt: it does.
  std::optional<std::string> WhyNoMore(uint32_t wanted) const;

  // `shutdown`: its script has one, or leaves something else for the end of the process.
  std::vector<Event> Ready(uint32_t process, bool shutdown);
  // It has left something since then.
  std::vector<Event> Owes(uint32_t process);
  void Answered() { starts_.Answered(); }
  // It is killed, as it began with no mini-batch ever.
  void NeverBegan() { starts_.EndedIdle("it began with no mini-batch that it was given"); }
  struct StartEnd {
    std::vector<Event> events{};
    bool gives_up = false;  // the node has nothing to hope for
  };
  // It said that it cannot start. `fatal`: no other one can. `logged`: the log of its errors has
  // it.
  StartEnd StartFailed(uint32_t process, const std::string& message, bool fatal, bool logged,
                       bool node_ends);
  // shutdown() has returned, or raised with that message.
  void Stopped(uint32_t process, std::string failure);
  // It is gone, as `words` say; a shutdown() may take `timeout`. `no_room`: no end counts now.
  std::vector<Event> Exited(uint32_t process, const Ended& ended, const std::string& words,
                            bool no_room, Duration timeout);
  // Where its script is in Python; "": it did not say.
  Event Where(uint32_t process, std::string where) const;

  // For a coordinator that may not know them: the processes that owe a shutdown(). And for one that
  // waits for these alone, all of them in one event, behind what was told of those that ended.
  std::vector<Event> Owes() const;
  Event Owing() const;

 private:
  const uint32_t node_;
  Starts starts_;
  Shutdowns shutdowns_;
};

}  // namespace parallelrun::agent
