// Coordinator is the decision maker of one job: it leases planned mini-batches to nodes, turns what
// they report into ledger records, and decides the verdict. It does no I/O but through the Ledger
// it is given, starts no thread and reads no clock, so that a simulation can run it as it is. All
// calls come from one thread. Protocol: docs/coordinator-api.md, docs/ledger.md.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/time.h"
#include "coordinator/control.h"
#include "coordinator/core/closing.h"
#include "coordinator/core/newest.h"
#include "coordinator/core/nodes.h"
#include "coordinator/core/waiters.h"
#include "coordinator/core/working_time.h"
#include "coordinator/ledger/ledger.h"
#include "coordinator/plan/plan_store.h"
#include "coordinator/refusals.h"
#include "job/availability.h"
#include "job/job_state.h"
#include "job/losses.h"
#include "job/node_messages.h"
#include "job/rate.h"

namespace parallelrun {

struct CoordinatorLimits {
  Duration lease = seconds(10);
  Duration look = seconds(1);          // for a newer epoch, at least so often: a tenth of a lease
  Duration broken_grace = seconds(2);  // for a node whose connection broke
  uint32_t run_max_try = 3;
  uint32_t max_losses = 10;  // then a mini-batch fails as LostTooOften
  FailureRules rules;
  bool isolate_failures = false;  // a mini-batch that used its tries is split
  // At the tail, idle processes try what takes long a second time. Without it no two nodes may be
  // in run() of one mini-batch at once.
  bool speculation = false;
  Duration slow_least = seconds(10);  // what takes less is never called slow
  uint32_t first_epoch = 1;           // of this run: process names are counted from it
  uint32_t nodes = 1;                 // expected
  uint32_t processes = 1;             // of each
  uint64_t settings_digest = 0;
  Duration wall_offset{0};  // wall time less monotonic time: to tell when, never to decide
  Duration progress_timeout = seconds(300);
  Duration first_task_timeout = seconds(600);
  Duration shutdown_timeout = seconds(300);
};

// What a node is told when it registers.
struct NodeRegistration {
  Incarnation incarnation;
  uint32_t first_process = 0;
};

struct NodeView {
  uint32_t index = 0;
  bool registered = false;
  bool gave_up = false;
  uint32_t processes = 0;
  size_t held = 0;
};

class Coordinator {
 public:
  enum class Phase {
    kRunning,
    kDraining,    // leases nothing; ends when no node is left
    kClosing,     // all is settled: processes run shutdown(), and the verdict waits for them
    kDeciding,    // the verdict is appended, not durable yet
    kFinalizing,  // the verdict is durable: the output is to be published
    kEnded,       // nothing more will be written
  };

  // The reply's views are valid during the call. An error of kStale makes the agent register anew.
  using Answer = std::function<void(const Result<ExchangeReply>&)>;

  // `state` holds what the ledger's history says, after Begin. All must outlive this object.
  Coordinator(CoordinatorLimits options, Ledger& ledger, PlanStore& plan, JobState& state,
              Instant now);

  // --- nodes
  // `agent` names the agent process: another one for the same node means that the one before died.
  // `pod` is the number of its pod; 0: unknown.
  NodeRegistration Register(uint32_t node, const std::string& agent, uint32_t processes,
                            Instant now, uint64_t pod = 0);
  // Another agent of that node has taken the place of this one, which may not register any more.
  bool Superseded(uint32_t node, const std::string& agent, uint64_t pod) const {
    return nodes_.Superseded(node, agent, pod);
  }
  bool IsRegistered(uint32_t node, const Incarnation& incarnation) const {
    return nodes_.InForce(node, incarnation);
  }
  // Calls `answer` once, now or at a later event. Gives a name for ConnectionGone.
  uint64_t Exchange(uint32_t node, const ExchangeRequest& request, Instant now, Answer answer);
  void Leave(uint32_t node, const Incarnation& incarnation, Instant now);
  // The connection of an exchange is gone: nobody hears its answer any more.
  void ConnectionGone(uint64_t exchange, Instant now);

  // --- plan: what the planner gives (chunks, types) in order, then exactly one of EndPlan and
  // FailPlan. Nothing more is taken once there is a verdict.
  Status AddChunk(const std::string& encoded, Instant now);
  void EndPlan(Instant now);
  void FailPlan(const Error& error, Instant now);

  // What scripts logged with run.log since the last call: (node, process, JSON).
  struct Metric {
    uint32_t node = 0;
    uint32_t process = 0;
    std::string json;
  };
  std::vector<Metric> TakeMetrics() { return std::exchange(metrics_, {}); }
  // What nodes reported and was not taken.
  const Refusals& refusals() const { return refusals_; }
  // Worker processes that did not come through their start, in this epoch, and the last one's
  // error.
  uint64_t init_failures() const { return init_failures_; }
  const std::string& init_error() const { return init_error_; }
  std::vector<Refusals::Line> TakeRefusals() { return refusals_.Take(); }

  // --- ledger and time
  void OnDurable(Instant now);
  // Each second or oftener; a gap above two seconds is time that the coordinator itself lost.
  void Tick(Instant now);
  // The ledger cannot be written for now (disk full): nothing is leased until Resume.
  void Pause(std::string why) { paused_ = std::move(why); }
  void Unpause();

  // --- is this epoch the newest? A volume may hang, so the edge looks, in a thread of its own.
  // Whether it should look now; it does one look at a time.
  bool WantsLook(Instant now) const;
  // What a look has seen that began at `begun`. A look counts from then on: what came since it may
  // not have seen.
  void OnLooked(Instant begun, const Status& seen, Instant now);
  Instant looked_at() const { return newest_.looked_at(); }

  // --- people and the cluster (docs/coordinator-api.md, "PUT /v1/control")
  void Control(const ControlRequest& control, Instant now);
  // Of the newest control that was applied.
  uint64_t control_generation() const { return control_generation_; }
  void Drain(Instant now);
  void Cancel(Instant now);
  // Nodes with an index of `nodes` and above are drained.
  void SetNodes(uint32_t nodes, Instant now);
  // Records them, unless they are in force already.
  void SetThresholds(const Thresholds& thresholds, Instant now);
  void OnPodEnd(const PodEnd& end, Instant now);

  // --- end: after kFinalizing, one of these
  void OnPublished(const PublishedRecord& published, Instant now);
  void OnNothingToPublish() { phase_ = Phase::kEnded; }

  // Answers every parked request; before the process ends.
  void Close(const Error& why);

  Phase phase() const { return phase_; }
  // There is a verdict, durable or not.
  bool decided() const { return over(); }
  bool superseded() const { return newest_.superseded(); }
  // Why the ledger is gone, "": it is not. Nothing more can be promised then.
  const std::string& lost() const { return newest_.lost(); }
  const JobState& state() const { return state_; }
  Losses losses() const { return CountLosses(state_.counts(), options_.rules); }
  const FailureRules& rules() const { return options_.rules; }
  const std::string& paused() const { return paused_; }
  // Why the job, or one of its nodes, waits for its disk; "" when none does.
  std::string WaitsFor() const;
  const Rate& rate() const { return rate_; }
  // Mini-batches; one that was split runs until all of its pieces are settled.
  uint64_t running() const {
    return availability_.live() - availability_.live_pieces() + state_.counts().split;
  }
  uint64_t pending() const {
    return availability_.pending() - (state_.counts().pieces_open - availability_.live_pieces());
  }
  std::vector<NodeView> nodes() const;
  std::vector<Held> HeldBy(uint32_t node) const { return availability_.HeldBy(node); }
  // What is not as its invariants say, "": all is. Counts everything: for tests.
  std::string Check(Instant now) const;
  size_t registered_nodes() const { return nodes_.registered(); }

 private:
  using Node = Nodes::Node;

  void TakeEvents(uint32_t index, Node& node, const ExchangeRequest& request, Waiter& waiting);
  void TakeShutdown(uint32_t index, const ProcessEvent& event, Waiter& waiting);
  // Those processes will not be heard of any more.
  void LoseShutdowns(const std::vector<ProcessId>& processes, const std::string& why);
  // All is settled, and the verdict waits for processes that run shutdown().
  bool AwaitsShutdowns(const Verdict& verdict, Instant now);
  AttemptTimes Times(const Finished& done, Instant now) const;
  // Ends the leases of answers that the node will never see.
  void EndUnheard(uint32_t index, const ExchangeRequest& request);
  // False when an offer cannot be answered now.
  bool TakeHeld(uint32_t index, const Node& node, const ExchangeRequest& request, Instant now,
                Waiter& waiting);
  void TakeFinished(uint32_t index, const Node& node, const ExchangeRequest& request, Instant now,
                    Waiter& waiting);
  void Refuse(const LeaseName& name, RefusedReport::Kind kind, RefusalReason why, Waiter& waiting);
  RefusalReason WhyRefused(BatchId id) const;
  void NoteRefused(uint32_t index, const Node& node, const Incarnation& incarnation);
  // What comes with an incarnation that is not in force.
  void RefuseAll(uint32_t index, const ExchangeRequest& request);
  void NoteStarted(const HeldLease& held);
  // Acknowledges `name` if its record is in the ledger already.
  bool Repeated(const LeaseName& name, Waiter& waiting);
  // What one more failed attempt means.
  AttemptEnd EndOfAttempt(const LeaseName& name, Cause cause) const;
  // Records a failed attempt and ends its lease; returns the position of the record.
  uint64_t Fail(const FailedRecord& failed, const LeaseName& lease);
  // The agent of `node` died, and what it held with it; `end`: of its pod, where that was told.
  void LoseLeases(uint32_t node, const PodEnd* end, Instant now);
  // Ends what an agent held that died.
  std::vector<Held> HeldAtDeath(uint32_t index, Node& node);
  void NarrowDown(const std::vector<Held>& held);
  // It was replaced, and may be at work still.
  void SetLeasesAside(uint32_t node);
  // run() had begun under that lease when its node died, or nothing else was held. Ends the lease.
  void Lose(uint32_t node, const LeaseName& name);
  // Ends a lease whose mini-batch was handed back, or taken away without a loss.
  void EndLease(const LeaseName& name);
  void FailForMemory(const LeaseName& name, const PodEnd& end, Instant now);

  Ledger::Appended Record(const parallelrun::Record& record);
  void Conclude(const Verdict& verdict);
  void Decide(Instant now);
  // What an attempt says of the program rather than of its data.
  void NoteFailure(const FailedRecord& failed);
  // Nothing has succeeded, and each process has failed by an error of the program.
  bool ProgramFailed() const;
  // The verdict when nothing has moved for too long.
  std::optional<Verdict> Overdue(Instant now) const;
  // Answers whoever was woken and can be answered: the end of each event.
  void AnswerWoken(Instant now);
  // There is something to say to it besides leases.
  bool Concerns(const Waiter& waiting, Instant now) const;
  bool TryAnswer(Waiter& waiting, Instant now);
  uint64_t Grants(const Waiter& waiting) const;
  bool MayLease(const Waiter& waiting) const;
  // What runs longer than this may be tried a second time; nullopt while nothing may be.
  std::optional<Duration> Slow() const;
  std::optional<LeaseName> GrantSecond(const Waiter& waiting, Instant now);
  Directive DirectiveFor(uint32_t node) const;
  bool over() const {
    return phase_ != Phase::kRunning && phase_ != Phase::kDraining && phase_ != Phase::kClosing;
  }

  CoordinatorLimits options_;
  Ledger& ledger_;
  PlanStore& plan_;
  JobState& state_;
  WorkingTime working_;
  Availability availability_;
  Rate rate_;
  Phase phase_ = Phase::kRunning;
  Newest newest_;
  std::string paused_;
  Nodes nodes_;
  Closing closing_;
  bool drains_ = false;  // as somebody has asked
  uint64_t control_generation_ = 0;
  Waiters waiters_;
  uint64_t verdict_position_ = 0;
  uint64_t published_position_ = 0;
  uint64_t init_failures_ = 0;
  std::string init_error_;
  // Of errors of the program: the processes of each node, and the mini-batches. Until one succeeds.
  std::map<uint32_t, std::set<uint32_t>> program_failed_;
  std::set<BatchId> program_failed_at_;
  Refusals refusals_;
  std::vector<RefusedReport> refused_;  // by the exchange that is being taken
  std::vector<Metric> metrics_;  // bounded by what an exchange carries; taken after each event
  // In working time.
  Instant started_;
  Instant last_tick_;
  std::optional<Instant> verdict_durable_at_;
  Instant last_progress_;
  double elapsed_seconds_ = 0;    // of the results of this epoch
  uint64_t elapsed_results_ = 0;  // and their number
};

}  // namespace parallelrun
