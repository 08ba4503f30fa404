// Everything that a plan is made from, as plain data: the job, its pods, what its coordinator
// says, and facts about other objects. The reconciler fills it in; the digests here turn objects
// of the API server into it. Pure; any thread.
//
// The reconciler promises: (1) `pods` holds every pod that this process created for the job and
// that its cache does not show yet (DigestPod of what the create answered); (2) a job whose last
// status write is not in the cache yet is not planned. Both keep a stale cache from acting twice;
// across two operators, fixed names and the coordinator's fences do.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "api/parse.h"
#include "base/time.h"
#include "operator/report.h"
#include "operator/status/status.h"

namespace parallelrun::operators {

// Jobs with another one in spec.managedBy are that controller's.
inline constexpr char kControllerName[] = "parallelrun.dev/operator";

struct ObservedJob {
  api::ParsedJob parsed;  // ReadJob(object, Target::kCluster)
  // Those of the object, also when it could not be parsed.
  std::string name_space, name, uid, resource_version;
  int64_t generation = 0;
  WallTime created{};
  bool deleting = false;
  std::string output_address;  // OutputAddress; "" also where it could not be parsed
  JobStatus status;            // the previous one
};
// Reads the object as the API server gives it.
ObservedJob ReadObservedJob(const nlohmann::json& object);

enum class PodRole { kCoordinator, kNode };
enum class PodPhase { kPending, kRunning, kSucceeded, kFailed, kUnknown };

// How a container ended.
struct Ended {
  int32_t exit_code = 0;
  std::string reason, message;  // "OOMKilled"; the termination message
  WallTime started{}, finished{};
};

struct ContainerDigest {
  bool running = false, ready = false;
  WallTime started{};                           // while it runs; unknown: the epoch
  std::string waiting_reason, waiting_message;  // "ImagePullBackOff"
  std::optional<Ended> ended;                   // state.terminated, else lastState.terminated
  int64_t restarts = 0;
  std::string image_id;  // by digest, once it is pulled
};

struct PodDigest {
  std::string name, uid;
  std::string job, job_uid;  // label parallelrun.dev/job; the controlling owner's uid
  PodRole role = PodRole::kNode;
  int32_t index = 0;        // of a node
  int64_t incarnation = 0;  // 0: its labels could not be read
  int32_t failures = 0;     // of this index, one after another, before this pod: back-off
  std::map<std::string, int32_t> failed_hosts;  // where these were
  // Ends of this index before this pod that were nobody's fault and slow it down, one after
  // another.
  int32_t setbacks = 0;
  PodPhase phase = PodPhase::kPending;
  // A node whose agent has ended, but whose sidecars still run: `phase` is the agent\'s.
  bool lingers = false;
  std::string reason, message;  // of the pod: "Evicted"
  ContainerDigest main;         // `worker` or `coordinator`
  ContainerDigest init;         // `runtime`
  bool ready = false;
  WallTime ready_since{};     // while it is; unknown: the epoch
  bool host_silent = false;   // its containers were ready when its host was last heard of
  std::string unschedulable;  // message of PodScheduled=False
  std::string disruption;     // reason of DisruptionTarget=True
  WallTime created{};
  std::optional<WallTime> deletion;  // deletionTimestamp: the end of its grace
  std::string ip, node_name;

  bool Terminal() const { return phase == PodPhase::kSucceeded || phase == PodPhase::kFailed; }
  // Holds resources and may work: what an index has at most one of.
  bool Live() const { return !Terminal() && !deletion; }
};
// Knows ended pods without container states (PodGC, disk pressure) and pods without a status.
PodDigest DigestPod(const nlohmann::json& pod);

// What the coordinator said when it was last asked.
struct CoordinatorView {
  std::string pod_uid;           // who answered
  std::optional<Report> report;  // the last that was pulled from that pod
  WallTime pulled{};             // when
  std::string error;             // why the last pull or control call failed; empty: it did not
  WallTime asked_since{};        // when that pod was asked for the first time
  // The last control body that this pod's coordinator has answered, and when it first did.
  std::optional<nlohmann::json> acknowledged;
  WallTime acknowledged_at{};
};

// Objects that are read one at a time, on a plan's request (Plan::needs).
enum class FactKind {
  kConfigMap,
  kSecret,
  kClaim,
  kService,
  kNetworkPolicy,
  kDisruptionBudget,
  kPodEvents,
  kClaimEvents
};
struct FactKey {
  FactKind kind = FactKind::kConfigMap;
  std::string name;                                  // of the object; of events, its uid
  auto operator<=>(const FactKey&) const = default;  // NOLINT(modernize-use-nullptr)
};

struct PodEvent {
  std::string reason, message;  // "FailedMount"
  bool warning = false;
  WallTime last{};
};

struct Fact {
  enum class State { kPresent, kAbsent, kUnreadable };
  State state = State::kPresent;
  WallTime read{};
  std::string error;                      // kUnreadable: what the API server said
  bool passing = false;                   // kUnreadable: the next try may succeed
  std::string uid;                        // of the object
  std::string owner_uid;                  // of the controlling owner
  std::string content;                    // annotation kContentAnnotation: of children
  std::vector<std::string> access_modes;  // of a claim
  std::string phase;                      // of a claim: "Pending", "Bound"; "" if nobody says
  std::vector<PodEvent> events;           // of kPodEvents and kClaimEvents
};
// Of an object that was read (for secrets, its metadata alone). Not for events.
Fact DigestFact(const nlohmann::json& object, WallTime read);
// An Event of core/v1 or events.k8s.io/v1.
PodEvent DigestEvent(const nlohmann::json& event);

// A hash of what the operator meant an object to be, which it wrote on it.
inline constexpr char kContentAnnotation[] = "parallelrun.dev/content";

// An action that the API server refused when it was last tried, until it succeeds.
struct ApplyFailure {
  std::string object;  // "pods/digits-0a1b2-node-0-1", Action::Target()
  int status = 0;      // HTTP
  std::string reason, message;
  WallTime at{};
};

// ApplyFailure::reason of what is refused because the job's namespace is being deleted.
inline constexpr reasons::Reason kNamespaceTerminating("NamespaceTerminating");

// Another job that publishes to this one's output, and is not over.
struct Rival {
  std::string name_space, name, uid;
  WallTime created{};
  bool begun = false;  // it has had a coordinator
  bool waits = false;  // it is to stand still
};
// Nothing where it is over, is being deleted, or is another controller's.
std::optional<Rival> RivalOf(const ObservedJob& job);

struct Observed {
  ObservedJob job;
  std::vector<Rival> rivals;
  std::vector<PodDigest> pods;      // controlled by this job's uid
  std::vector<PodDigest> old_pods;  // of a job of the same name and another uid
  CoordinatorView coordinator;
  std::map<FactKey, Fact> facts;
  std::vector<ApplyFailure> failures;
  // What failed again and again and may succeed at any time: for people, no decision rests on it.
  std::vector<ApplyFailure> passing;
};

}  // namespace parallelrun::operators
