// ToBlame: whose fault the death of a worker process was. Pure; any thread.
//
// A script may kill its process by what is in one mini-batch (a crash in a library, memory), and
// that mini-batch must fail, not its neighbours: they were only in the same process. What shows
// which one it was is the status page of the process (docs/worker-protocol.md), as it stood at the
// death.
#pragma once

#include <cstdint>

#include "agent/core/agent_types.h"

namespace parallelrun::agent {

// A process that is gone.
struct Death {
  bool by_agent = false;   // it was killed, whatever for
  uint64_t timed_out = 0;  // the mini-batch whose time-out that was; 0: none
  bool no_room = false;    // there was no space where the node writes
  bool async = false;      // its script keeps several in flight
  bool at_work = false;    // its page showed it at one of those that it held
  uint64_t begun = 0;      // the last sequence that the page named
  uint64_t first = 0;      // of what it held: the one in front
  size_t held = 0;
};

// One of the mini-batches that it held.
struct Suspect {
  uint64_t sequence = 0;
  uint32_t bounces = 0;  // earlier deaths with it in front
};

enum class Fault : uint8_t {
  kNone,      // it runs again, as if it had never been given
  kBounced,   // so too, but the death is counted: see kMaxBounces
  kTimedOut,  // it was killed for this one
  kItsOwn,
};

// A mini-batch that is in front at so many deaths is to blame for the last one, whatever the page
// shows: else one that kills its process before the page names it would do so for ever.
inline constexpr uint32_t kMaxBounces = 3;

Fault ToBlame(const Death& death, const Suspect& suspect);

}  // namespace parallelrun::agent
