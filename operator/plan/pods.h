// Internal to the planner: what a job's pods mean. Which one stands for a node, and when its
// successor may be made. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "operator/observed.h"
#include "operator/plan/ends.h"

namespace parallelrun::operators {

// The pods of one index, or the coordinator's, by incarnation.
struct PodGroup {
  std::vector<const PodDigest*> pods;  // ascending
  const PodDigest* Live() const;       // the highest that is live, or nullptr
  const PodDigest* Tombstone() const;  // the highest that has ended
  const PodDigest* Highest() const { return pods.empty() ? nullptr : pods.back(); }
};

struct PodGroups {
  PodGroup coordinator;
  std::map<int32_t, PodGroup> nodes;
};
PodGroups GroupPods(const std::vector<PodDigest>& pods);

// "INDEX-INCARNATION", as in the status.
std::string CountedName(const PodDigest& node);

// The incarnation of a group's next pod: a name that was never used. With the same pods in view
// it is always the same, so that a stale cache's create fails with AlreadyExists.
int64_t NextIncarnation(const PodGroup& group, int64_t highest_used);

// When a node's next pod may be made, how many failures in a row it follows, how many ends that
// are nobody's fault and slow it down all the same, and which hosts it had better not go to.
struct Succession {
  WallTime not_before{};
  int32_t failures = 0;
  std::map<std::string, int32_t> failed_hosts{};
  int32_t setbacks = 0;
};
Succession SuccessionOf(const PodGroup& group);

// A pod that a clean-up waits for: it may still run. One that should be gone for a while is on a
// dead machine and never waited for.
bool MayRun(const PodDigest& pod, WallTime now);
// When that changes by itself.
WallTime GivenUpAt(const PodDigest& pod);

}  // namespace parallelrun::operators
