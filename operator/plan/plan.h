// What to do for one job, decided from what was observed. Pure and deterministic: it reads no clock
// and keeps nothing, so that the same plan is made again after any crash, and what was done already
// is found done. Any thread. Times are the API server's and this host's wall clock; seconds matter,
// milliseconds do not.
//
// How the reconciler carries a plan out: read `needs` that are missing or too old and plan again;
// else do `actions` in order (creates of pods next to each other may go at the same time); a failed
// one is remembered in Observed::failures and does not stop the others, but for a failed
// kEnsureAccess or kSnapshotCode, after which no pod is created; plan again at once if `goes_on`
// says so or pods were made; then write `status` if `write_status` says so, and after that has
// succeeded, emit `events`; come back at `wake`, or when the job, a pod or the coordinator's report
// changes.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "operator/credentials.h"
#include "operator/observed.h"
#include "operator/options.h"
#include "operator/status/status.h"

namespace parallelrun::operators {

struct Action {
  enum class Kind {
    kCreate,        // `object`; AlreadyExists is success when its controller is the job
    kApply,         // `object`, server-side, forced
    kEnsureAccess,  // make the access Secret from `access`, or bring it up to date
    kSnapshotCode,  // read ConfigMap `name`, create builders' CodeSnapshot of it; either's absence
                    // or presence becomes a fact
    kDelete,        // `resource`/`name` with precondition `uid`; NotFound is success
    kControl,       // PUT `object` to the coordinator's /v1/control at `address`
  };
  Kind kind = Kind::kCreate;
  std::string reason = {};    // why, for the log
  std::string resource = {};  // plural: "pods", "services", "parallelrunjobs"
  std::string name = {};
  std::string uid = {};
  nlohmann::json object = {};
  AccessContent access = {};
  std::string address = {};  // kControl: the coordinator pod's IP

  std::string Target() const { return resource + "/" + name; }
};

struct Need {
  FactKey key;
  Duration max_age{};  // an older fact is to be read again
};

struct EventToEmit {
  bool warning = false;
  std::string reason;   // CamelCase
  std::string message;  // at most kMaxMessage
};

// Ask the coordinator for its progress when the last answer (or try) is older than `max_age`. Need
// not be waited for: the job is planned again when the answer is there.
struct PullRequest {
  std::string pod_uid, address;
  uint16_t port = 0;
  Duration max_age{};
};

struct Plan {
  std::vector<Need> needs;       // all that this plan rests on, read or not
  bool waits_for_needs = false;  // some were not there: plan again after reading them
  std::vector<Action> actions;
  std::optional<PullRequest> pull;
  bool goes_on = false;  // the next step waits only for what the actions have found out
  JobStatus status;
  bool write_status = false;
  std::vector<EventToEmit> events;
  std::vector<std::string>
      failed_nodes;              // causes of those that the status counts anew; for metrics
  std::optional<WallTime> wake;  // none: only a change calls for a new plan
};

// Jobs that belong to another controller (spec.managedBy) get an empty plan.
Plan MakePlan(const Observed& observed, const OperatorOptions& options, WallTime now);

// Whether facts are there for all needs and young enough: false means read, then plan again.
std::vector<FactKey> MissingFacts(const Plan& plan, const Observed& observed, WallTime now);

// The body of the status write: apiVersion, kind, metadata.name and namespace, status.
nlohmann::json StatusObject(const ObservedJob& job, const JobStatus& status);

}  // namespace parallelrun::operators
