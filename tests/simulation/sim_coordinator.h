// One coordinator process: what src/coordinator/server.cc and start.cc do with threads and HTTP,
// done with events. Ledger, JobState, Coordinator, RunEnd, PlanStore and PublishOutput are the real
// ones.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "coordinator/coordinator.h"
#include "coordinator/core/run_end.h"
#include "ledger/ledger.h"
#include "output/output_claim.h"
#include "output/publisher.h"
#include "plan/planner.h"
#include "tests/simulation/sim_files.h"
#include "tests/simulation/world.h"

namespace parallelrun::simulation {

inline constexpr char kStateFolder[] = "/job/state";
inline constexpr char kOutputFolder[] = "/job/output";
inline constexpr char kOutputFile[] = "rows.txt";
inline constexpr char kOutputPath[] = "/job/output/rows.txt";
inline constexpr char kIndexPath[] = "/job/output/rows.txt.index.jsonl";
inline constexpr char kClaimPath[] = "/job/output/.rows.txt.parallelrun-claim";
inline constexpr char kForeignFile[] = "not of this run\n";
// The claim of a job of which nobody can tell whether it is over.
std::string RivalClaim();
inline constexpr uint64_t kSettingsDigest = 77;

class SimCoordinator : private plan::ChunkSource {
 public:
  SimCoordinator(World& world, size_t id, CoordinatorStart start);
  SimCoordinator(const SimCoordinator&) = delete;

  void Start();
  // Results of processes that did not close are void, by a person who continues the run.
  Status RunAgain();
  bool running() const { return coordinator_ != nullptr; }
  bool failed_some() const { return state_.counts().failed + state_.counts().items_isolated > 0; }
  const std::string& uid() const { return start_.uid; }
  uint32_t access() const { return start_.access; }
  uint64_t pod() const { return start_.pod; }
  bool ended() const { return ended_; }      // by itself
  bool refused() const { return refused_; }  // ifExists forbids what the job would do
  const coordinator::Coordinator* core() const { return coordinator_.get(); }
  uint32_t epoch() const { return ledger_ ? ledger_->epoch() : 0; }
  SimFiles& files() { return files_; }
  Instant frozen_until{};

  using Reply = std::function<void(World::Answer)>;
  void Register(uint32_t node, const std::string& agent, uint64_t pod, uint32_t processes,
                uint64_t run, const Reply& reply);
  void Exchange(uint32_t node, const std::string& bytes, const Reply& reply);
  void Leave(uint32_t node, const job::Incarnation& incarnation);
  void ConnectionGone(uint32_t node);
  void Drain();
  void HandOver();  // at a SIGTERM
  void Control(const coordinator::ControlRequest& control);
  // A person has moved its log away: it is seen no more, and what is open goes on.
  void LoseLedger() { ledger_lost_ = true; }
  // What became possible by the last event.
  void AfterEvent();
  void CompareWithReplay();
  Instant Now() const { return clock_.At(world_.now()); }
  std::string Describe() const;

 private:
  // Plan chunks come later, as from a thread that reads.
  bool Ask(const job::Place& place) override;
  Result<std::string> Take(const job::Place& place) override;
  void ReadChunk();

  void Refuse(const Error& why);
  void CheckCompany(uint32_t node, const job::ExchangeReply& reply);
  void Tick();
  void PlanNext();
  void Look();
  void Flush();
  void OnFlushed(const Result<uint64_t>& flushed);
  Status HoldOutput();
  // What RunEnd says is to be done.
  void Do(coordinator::RunEnd::Do step);
  void Publish();
  void OnPublished(const Result<output::Publication>& published);
  void LookAtOutput();
  void Take(coordinator::RunEnd::Do step);
  void Leave();
  // Before there is a Coordinator.
  void CannotStart(coordinator::CoordinatorExit exit);
  void Exit(coordinator::CoordinatorExit exit);
  bool Ending() const { return ended_ || end_->ending(); }
  void Later(Duration delay, void (SimCoordinator::*event)());

  World& world_;
  const OwnClock clock_;
  const size_t id_;
  const CoordinatorStart start_;
  SimFiles files_;
  std::unique_ptr<ledger::Ledger> ledger_;
  job::JobState state_;
  output::HeldOutput held_;
  std::optional<job::Place> wanted_chunk_;
  std::optional<std::pair<job::Place, Result<std::string>>> chunk_;  // read, and not taken
  std::unique_ptr<plan::PlanStore> plan_;
  std::unique_ptr<coordinator::Coordinator> coordinator_;
  std::optional<coordinator::RunEnd> end_;  // with it
  plan::PlanCursor cursor_;
  std::map<job::LeaseName, uint32_t> suspects_;  // leased, and the company that each may have
  std::map<uint32_t, uint64_t> newest_;          // exchange of a node
  bool flushing_ = false;
  bool ledger_lost_ = false;
  bool newer_seen_ = false;
  bool ended_ = false;
  bool refused_ = false;
};

}  // namespace parallelrun::simulation
