// Overdue: the time-outs of a worker process, by what its status page shows. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "agent/core/agent_types.h"
#include "base/time.h"

namespace parallelrun::agent {

// Why a process is killed.
struct Overdue {
  uint64_t sequence = 0;  // the mini-batch to blame; 0: none
  uint64_t run_ns = 0;    // for which run() had gone on
  job::Cause cause = job::Cause::kProcessEnded;
  std::string message;  // for people
};

// What a process holds, as far as its time-outs go.
struct Holding {
  uint32_t process = 0;
  size_t count = 0;
  Instant given{};        // when the one in front was handed out
  Instant busy{};         // since when the process could be at the one in front
  bool answered = false;  // it did, at least once
};

// The page shows it at a mini-batch that it holds: each phase has a limit of its own.
std::optional<Overdue> OverdueAtWork(uint32_t process, const StatusReading& page,
                                     const Registration& terms, Instant now);
// Several are in flight, the page shows one at most: each has the limit of run(), from its hand-out
// on.
std::optional<Overdue> OverdueInFlight(uint32_t process, uint64_t sequence, Instant given,
                                       const Registration& terms, Instant now);
// It holds some and begins with none: a thread that the script left behind keeps the interpreter,
// or the process is stopped. None is to blame.
std::optional<Overdue> OverdueToBegin(const Holding& holding, const StatusReading& page,
                                      const Registration& terms, Instant now);

}  // namespace parallelrun::agent
