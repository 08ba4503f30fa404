// Coordinator is the decision maker of one job: it leases planned mini-batches to nodes, turns what
// they report into ledger records, and decides the verdict. It does no I/O but through the Ledger
// it is given, starts no thread and reads no clock, so that a simulation can run it as it is. All
// calls come from one thread. Protocol: docs/coordinator-api.md, docs/ledger.md.
//
// It holds parts that own their data (core/README.md); what is its own is the order in which an
// event passes through them. Each event ends with an answer for whoever was woken by it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/time.h"
#include "coordinator/control.h"
#include "coordinator/core/answers.h"
#include "coordinator/core/attempts.h"
#include "coordinator/core/ending.h"
#include "coordinator/core/init_watch.h"
#include "coordinator/core/journal.h"
#include "coordinator/core/newest.h"
#include "coordinator/core/nodes.h"
#include "coordinator/core/program_errors.h"
#include "coordinator/core/run_end.h"
#include "coordinator/core/standstill.h"
#include "coordinator/core/told.h"
#include "coordinator/core/working_time.h"
#include "coordinator/limits.h"
#include "job/availability.h"
#include "job/losses.h"

namespace parallelrun::coordinator {

// What a node is told when it registers.
struct NodeRegistration {
  job::Incarnation incarnation;
  uint32_t first_process = 0;
};

class Coordinator {
 public:
  using Phase = Ending::Phase;
  // The reply's views are valid during the call. An error of kStale makes the agent register anew.
  using Answer = std::function<void(const Result<job::ExchangeReply>&)>;

  // `state` holds what the ledger's history says, after Begin. All must outlive this object.
  Coordinator(const CoordinatorLimits& limits, ledger::Ledger& ledger, plan::PlanStore& plan,
              job::JobState& state, Instant now);

  // --- nodes
  // `agent` names the agent process: another one for the same node means that the one before died.
  // `pod` is the number of its pod; 0: unknown. Ask Superseded and HasToWait first.
  NodeRegistration Register(uint32_t node, const std::string& agent, uint32_t processes,
                            Instant now, uint64_t pod = 0);
  // Whether the agent should ask again later: that of the pod before it is at its last
  // mini-batches.
  bool HasToWait(uint32_t node, const std::string& agent, uint64_t pod, Instant now);
  // Calls `answer` once, now or at a later event. Gives a name for ConnectionGone.
  uint64_t Exchange(uint32_t node, const job::ExchangeRequest& request, Instant now, Answer answer);
  void Leave(uint32_t node, const job::Incarnation& incarnation, Instant now);
  // The connection of an exchange is gone: nobody hears its answer any more.
  void ConnectionGone(uint64_t exchange, Instant now);

  // --- plan: what the planner gives (chunks, types) in order, then exactly one of EndPlan and
  // FailPlan. Nothing more is taken once there is a verdict.
  Status AddChunk(const std::string& encoded, Instant now);
  void EndPlan(Instant now);
  void FailPlan(const Error& error, Instant now);

  // --- ledger and time
  void OnDurable(Instant now);
  // Each second or oftener; a gap above two seconds is time that the coordinator itself lost.
  void Tick(Instant now);
  // The ledger cannot be written for now (disk full): nothing is leased until Unpause.
  void Pause(std::string why) { journal_.Pause(std::move(why)); }
  void Unpause();

  // --- is this epoch the newest? A volume may hang, so the edge looks, in a thread of its own.
  // Whether it should begin a look now, and that it does: there is one at a time.
  bool WantsLook(Instant now) const;
  void LookBegins() { newest_.LookBegins(); }
  // What a look has seen that began at `begun`. A look counts from then on: what came since it may
  // not have seen.
  void OnLooked(Instant begun, const Status& seen, Instant now);

  // --- people and the cluster (docs/coordinator-api.md, "PUT /v1/control")
  void Control(const ControlRequest& control, Instant now);
  void Drain(Instant now);
  void Cancel(Instant now);
  // Nodes with an index of `nodes` and above are drained.
  void SetNodes(uint32_t nodes, Instant now);
  void SetThresholds(const job::Thresholds& thresholds, Instant now);
  void OnPodEnd(const PodEnd& end, Instant now);

  // A part of the plan that was not at hand has been read: what waited for it goes on.
  void OnPlanRead(Instant now);

  // Who hears of each record, once it is in the state, in the middle of an event.
  void Watch(std::function<void(const job::Record&)> watcher) {
    journal_.Watch(std::move(watcher));
  }

  // --- end: after kFinalizing, one of the first two
  void OnPublished(const job::Published& published, Instant now);
  void OnNothingToPublish() { ending_.NothingToPublish(); }
  // Answers every parked request; before the process ends.
  void Close(const Error& why) { answers_.Close(why); }

  // --- what it says: its parts, and what is put together of several
  RunEnd::Facts FactsOfEnd(Instant now) const;
  const job::JobState& state() const { return journal_.state(); }
  bool decided() const { return journal_.decided(); }  // a verdict, durable or not
  const std::string& paused() const { return journal_.paused(); }
  Phase phase() const { return ending_.phase(); }
  const job::FailureRules& rules() const { return ending_.rules(); }
  const job::Availability& availability() const { return availability_; }
  const Nodes& nodes() const { return nodes_; }
  const Newest& newest() const { return newest_; }
  const Gates& gates() const { return answers_.gates(); }
  const ProgramErrors& program_errors() const { return program_errors_; }
  const FailedAttempts& failed_attempts() const { return attempts_.failed(); }
  const Told& told() const { return told_; }
  Told& told() { return told_; }
  // Of the newest control that was applied.
  uint64_t control_generation() const { return control_generation_; }
  job::Losses losses() const { return job::CountLosses(state().counts(), rules()); }
  // Mini-batches; one that was split runs until all of its pieces are settled.
  uint64_t running() const;
  uint64_t pending() const;
  // The mini-batch that is in run() for longest, as far as was heard, and for how long.
  std::optional<std::pair<job::Held, Duration>> Slowest(Instant now) const;
  // For how long init() has been running, on how many nodes, and where it is; "" while that is no
  // news.
  std::string InitText(Instant now) const;
  // Why the job, or one of its nodes, waits for its disk; "" when none does.
  std::string WaitsFor() const;
  // What is not as its invariants say, "": all is. Counts everything: for tests.
  std::string Check(Instant now) const;

 private:
  // The agent of a node died, and what it held with it; `end`: of its pod, where that was told.
  void Died(uint32_t index, const PodEnd* end, Instant now);
  void Decide(Instant now);
  std::string WhyStill() const;
  void Follow(const Ending::Then& then);
  void AnswerWoken(Instant now) { answers_.AnswerWoken(now, working_.At(now)); }
  int64_t WallUs(Instant now) const {
    return (now.time_since_epoch() + limits_.wall_offset).count();
  }

  const CoordinatorLimits limits_;
  plan::PlanStore& plan_;
  WorkingTime working_;
  Journal journal_;
  job::Availability availability_;
  Nodes nodes_;
  Newest newest_;
  Ending ending_;
  ProgramErrors program_errors_;
  Standstill standstill_;
  InitWatch init_watch_;
  Attempts attempts_;
  Told told_;
  Answers answers_;
  uint64_t control_generation_ = 0;
};

}  // namespace parallelrun::coordinator
