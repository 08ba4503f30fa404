// Internal to the planner: why a pod ended, and whose fault that was (the table in
// docs/operator.md, "Whose fault an end is"). Pure.
#pragma once

#include <cstdint>
#include <string>

#include "base/time.h"
#include "operator/observed.h"

namespace parallelrun::operators {

enum class EndCause {
  kFinished,    // the agent was told that the job is over
  kDrained,     // it left in order
  kDisruption,  // free: Kubernetes or somebody took the pod away
  kRefused,     // free but slowed: its kubelet did not want it, or nobody knows the reason
  kPressure,    // free but slowed: its host ran short of something
  kMemory,      // the whole container ran out of memory: the coordinator judges the mini-batches
  kDisk,        // it passed a limit of its own on the disk: likewise
  kJob,         // anything else: counts against nodeRestartLimit
};

// Whether it is free.
bool NobodysFault(EndCause cause);

struct PodOutcome {
  EndCause cause = EndCause::kDisruption;
  std::string reason;   // "Evicted", "OOMKilled", "AgentGaveUp"
  std::string message;  // for people
  int32_t exit_code = -1;
  WallTime at{};  // zero: not known
};

// Of a pod that is not Live().
PodOutcome EndOf(const PodDigest& pod);

// So many in a row that are free but slowed are worth a Warning.
inline constexpr int32_t kSetbacksToWarn = 3;

}  // namespace parallelrun::operators
