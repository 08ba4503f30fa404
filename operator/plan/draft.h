// Internal to the planner: a plan being made. Each step reads what was seen and adds to the draft;
// MakePlan (plan.cc) says in which order. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "operator/builders/objects.h"
#include "operator/plan/plan.h"
#include "operator/plan/pods.h"
#include "reasons/reason.h"

namespace parallelrun::operators {

// What was read of an object that the operator has made is taken for true for so long.
inline constexpr Duration kChildrenLast = seconds(600);
// A refusal of the API server is told for so long after it.
inline constexpr Duration kFailuresLast = seconds(60);

// Something that keeps the job from running as it should, as a reason and words for people.
struct Obstacle {
  int rank = 0;  // the highest one is shown
  reasons::Reason reason;
  std::string message;
  bool stalled = false;  // will not mend itself: somebody has to change something
  bool warning = true;   // false: nothing is wrong with the job
  // Its event waits until the message holds these words; none: it does not wait.
  std::string event_words = {};
};

// What the coordinator said of the whole job.
struct CoordinatorVerdict {
  bool succeeded = false;
  std::string reason, message;
};

struct Draft {
  Draft(const Observed& observed, const OperatorOptions& operator_options, WallTime at);

  const Observed& seen;
  const OperatorOptions& options;
  const WallTime now;
  const api::JobSpec& spec;
  const JobStatus& before;  // the status as it was read
  const JobIdentity identity;
  const PodGroups groups;

  Plan plan;
  JobStatus& status;             // plan.status
  std::optional<Report> report;  // of the present coordinator, or its last words
  std::optional<CoordinatorVerdict> verdict;
  bool finalizing = false;  // every mini-batch is settled
  bool suspend = false;     // the job is to stand still
  int32_t unneeded = 0;     // nodes that have no pod, since nothing is left for them
  std::vector<Obstacle> obstacles;

  // No status was ever written: the job most likely has nothing yet, so its objects are created
  // without a look whether they are there; a create that meets one looks.
  bool FirstVisit() const { return before.phase.empty(); }
  BuildContext Build() const;
  uint16_t CoordinatorPort() const;  // the job's own, once it has one
  // An empty `message`: what the reason means says it all.
  void Set(std::string_view type, Truth truth, reasons::Reason reason, std::string_view message);
  void Set(std::string_view type, Truth truth, const reasons::Said& reason,
           std::string_view message);
  void Wake(WallTime at);
  void WakeIn(Duration pause) { Wake(now + pause); }

  // Asks for a fact; what is absent is looked for again every 5 s. nullptr while it is not known;
  // if `required`, the plan then waits for it.
  const Fact* Know(FactKind kind, const std::string& name, Duration max_age, bool required = true);

  // Whether `target` was refused in the last 5 s; the plan wakes when it may be tried again.
  bool RefusedLately(const std::string& target);

  // Another node than this one is at work, and has not failed before.
  bool OthersWork(int32_t index) const;

  void DeletePod(const PodDigest& pod, const std::string& reason);
  void DeleteNodes(const std::string& reason);  // all that run
  void Event(bool warning, reasons::Reason reason, std::string_view message);
  void Event(bool warning, reasons::Said reason, std::string_view message);
};

// end.cc: how a job ends.
void FindVerdict(Draft& draft);
void JudgeJob(Draft& draft);   // verdict, cancel, deadlines, limits -> Complete or FailureTarget
void EndFailed(Draft& draft);  // FailureTarget is set: stop everything, then Failed
void KeepEnded(Draft& draft);  // Complete or Failed: leave nothing running; TTL

// Without a pod that it keeps, a budget is but an alarm of whoever watches budgets.
void DropBudget(Draft& draft);

// count.cc: what ended pods and coordinators count for. While every mini-batch is settled, only
// coordinators count: one that cannot publish the output is not started for ever.
void CountEnds(Draft& draft, bool running);

// Another job that is to have the output before this one; nullptr: there is none. While this one
// has no pods.
const Rival* WhoHasTheOutput(const Draft& draft);
// "job default/other publishes to the same output (volume out, path scores) and is not over".
std::string OutputTakenBy(const Draft& draft, const Rival& rival);

// start.cc: what pods need. False: no pod may be made yet.
bool PrepareStart(Draft& draft);
bool PrepareCode(Draft& draft);

// run.cc: pods, control, progress.
void RunPods(Draft& draft);
void TalkToCoordinator(Draft& draft);
void AskForProgress(Draft& draft);
// The body of PUT /v1/control that the job calls for.
nlohmann::json ControlBody(const Draft& draft);

// reach.cc: who does not reach whom.
void FindUnreached(Draft& draft);
// obstacles.cc: why pods do not run. Sorts all that were found.
void FindObstacles(Draft& draft);

// show.cc: the parts of the status that only show.
void ShowStatus(Draft& draft);
// Whether the status is to be written now; sets Plan::write_status and when to look again.
void DecideWrite(Draft& draft);
// events.cc: events that follow from the change of the status.
void TellChanges(Draft& draft);

}  // namespace parallelrun::operators
