// What Processes tells of worker processes. Plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "agent/core/agent_types.h"
#include "agent/core/blame.h"
#include "agent/core/overdue.h"
#include "base/time.h"

namespace parallelrun::agent {

enum class ProcessState : uint8_t { kGone, kStarting, kReady, kStopping, kKilled };

// A mini-batch that a process answered.
struct Answered {
  Key key = 0;
  Duration elapsed{};  // of this one
  Duration busy{};     // since the answer before
};

// A mini-batch that a process held when it ended.
struct Orphan {
  Key key = 0;
  Fault fault = Fault::kNone;
  uint32_t bounces = 0;
  Duration elapsed{};
  Duration ran{};        // in run(), if the page shows that
  bool at_work = false;  // the page shows this one
};

struct Ended {
  ProcessState state = ProcessState::kGone;  // that it was in
  bool idle = false;                         // it never answered, and held nothing
  Overdue killed_for;
  std::optional<Duration> cut_off;  // killed so long after it was asked for shutdown()
  std::vector<Orphan> orphans;      // the last one first
};

// What a look at the status pages found.
struct Checked {
  std::vector<Key> taken_back;  // these are with no process now; the last one first
  uint32_t never_began = 0;     // processes that are killed, since they began with nothing ever
};

}  // namespace parallelrun::agent
