// A job of a cluster from when it was applied to its end, by asking kubectl again and again.
// Blocking; main thread.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "cli/cluster/interruption.h"
#include "cli/cluster/kubectl.h"
#include "cli/follow/cluster_events.h"

namespace parallelrun::cli {

struct FollowedJob {
  std::string name;
  std::string uid;
  KubectlWhere where;
  bool losses_allowed = false;  // as of EndOf
};

// The object, or null where there is none of that name. kUnavailable: kubectl could not tell, and
// has said why.
Result<nlohmann::json> LookAtJob(const KubectlWhere& where, const std::string& name);

// Tells `follower` all of it, the end included, and returns the exit status: that of the end, or 1
// where the job was deleted or made anew meanwhile. An interruption ends it early, without an end:
// the job goes on.
int FollowToEnd(const FollowedJob& job, const Interruption& interruption, JobFollower& follower);

// `parallelrun stop JOB --namespace …`: cancels it, and waits for its end, at most that many
// seconds.
int CancelJob(const KubectlWhere& where, const std::string& name, int wait);

}  // namespace parallelrun::cli
